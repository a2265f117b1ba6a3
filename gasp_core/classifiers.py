"""Classifiers of other people: loaded whole, with their tokenizer and what they are called by.

Loads safetensors weights only and runs no code that comes with a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from gasp_core.errors import ModelUnsupported
from gasp_core.fingerprint import fingerprint
from gasp_core.loading import named_faults, require_whole
from gasp_core.model import commit, device_of, quiet
from gasp_core.tokenizer import SURROGATE, load_tokenizer


class Head(StrEnum):
    """What a classifier says something of, by the class of transformers that loads such models."""

    SEQUENCE = "AutoModelForSequenceClassification"
    TOKEN = "AutoModelForTokenClassification"
    TEXT = "AutoModelForSeq2SeqLM"


KINDS = {
    Head.SEQUENCE: "a sequence classifier",
    Head.TOKEN: "a token classifier",
    Head.TEXT: "a model that answers in text",
}


@dataclass(frozen=True, slots=True)
class Classifier:
    """A loaded classifier in evaluation mode, in float32. ``revision`` is its commit or its folder's fingerprint."""

    name: str
    revision: str
    device: torch.device
    network: Any
    tokenizer: Any

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The half-open character spans of the text's tokens, with none that the model adds."""
        read = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [(start, end) for start, end in read["offset_mapping"]]

    def window(self, most: int) -> int:
        """How many tokens it reads at once, all marks among them; ``most``, where it could read more."""
        first = max(2, *self._first_positions())
        positions = getattr(self.network.config, "max_position_embeddings", None) or most + first
        return int(min(most, self.tokenizer.model_max_length, positions - first))

    def _first_positions(self) -> Iterator[int]:
        """Where positions begin: some families count from behind the padding token's number on."""
        yield 0
        for name, module in self.network.named_modules():
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
                yield module.padding_idx + 1


def load_classifier(
    name: str,
    head: Head,
    *,
    device: str = "auto",
    revision: str | None = None,
    tokenizer_name: str | None = None,
    config: Any = None,  # noqa: ANN401 - transformers' own dynamic type
    key_mapping: Mapping[str, str] | None = None,
) -> Classifier:
    """Load a classifier by hub name or local folder; ``device`` as in ``gasp_core.model.load_model``.

    ``tokenizer_name`` and ``config`` stand in for those of the model, and ``key_mapping`` renames its weights, by
    pattern, where they are kept under other names.

    Raises ModelNotFound or ModelUnsupported, each saying what to do.
    """
    place, kind = device_of(name, device), KINDS[head]
    instead = {key: value for key, value in (("config", config), ("key_mapping", key_mapping)) if value is not None}
    with quiet(), named_faults(name, kind):
        tokenizer = load_tokenizer(tokenizer_name or name, None if tokenizer_name else revision, kind)
        network = _load_network(name, head, revision, instead).to(place).eval()
    if tokenizer.pad_token_id is None:
        raise ModelUnsupported(name, f"its tokenizer has no padding token; choose {kind} that has one")
    folder = Path(name)
    return Classifier(
        name=folder.name if folder.is_dir() else name,
        revision=fingerprint(folder, network.config, tokenizer) if folder.is_dir() else commit(name, revision),
        device=place,
        network=network,
        tokenizer=tokenizer,
    )


def read_config(name: str, kind: str, revision: str | None = None) -> dict[str, Any]:
    """What a model's config.json says. Raises ModelNotFound or ModelUnsupported."""
    from transformers import PreTrainedConfig  # seconds to import, which --help need not wait for

    with quiet(), named_faults(name, kind):
        if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
            raise FileNotFoundError(name)
        config, _ = PreTrainedConfig.get_config_dict(name, revision=revision)
    return dict(config)


def load_config(name: str, kind: str) -> Any:  # noqa: ANN401 - as above
    """The configuration of a model. Raises ModelNotFound or ModelUnsupported."""
    from transformers import AutoConfig  # as above

    with quiet(), named_faults(name, kind):
        return AutoConfig.from_pretrained(name, trust_remote_code=False)


def is_known_type(model_type: object) -> bool:
    """Whether transformers itself has models of this type, so that they need no code of their own."""
    from transformers import CONFIG_MAPPING  # as above

    return isinstance(model_type, str) and model_type in CONFIG_MAPPING


def clean(text: str) -> str:
    """The text without lone surrogates, which no tokenizer knows; every character keeps its place."""
    return SURROGATE.sub("\ufffd", text)


def _load_network(name: str, head: Head, revision: str | None, instead: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
    import transformers  # as above

    network, told = getattr(transformers, head).from_pretrained(
        name,
        revision=revision,
        dtype=torch.float32,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        # Refused below, by name.
        ignore_mismatched_sizes=True,
        **instead,
    )
    require_whole(name, told, KINDS[head])
    return network
