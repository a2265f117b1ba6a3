"""The language model that scores, and how any model is loaded.

Loads safetensors weights only and runs no code that comes with a model.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gasp_core.errors import ModelNotFound, ModelUnsupported

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

SURROGATE = re.compile("[\ud800-\udfff]")
"""What no tokenizer knows."""

# Models without a stated window (state-space models, ALiBi) are read up to here.
UNSTATED_WINDOW_TOKENS = 32_768

# A model whose own logits differ from ours by more than this has a head that we do not know.
HEAD_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids with their half-open character spans in the encoded text."""

    ids: list[int]
    spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A loaded causal language model in evaluation mode. ``window`` is its context length in tokens."""

    name: str
    revision: str
    dtype: str
    device: torch.device
    window: int
    network: Any
    tokenizer: Any

    def encode(self, text: str) -> Encoding:
        """Tokenise without special tokens."""
        # The backend is called directly: the wrapper warns about long texts, which are our daily bread. It knows no
        # lone surrogates; each is one character, so that offsets stay right.
        encoded = self.tokenizer.backend_tokenizer.encode(SURROGATE.sub("\ufffd", text), add_special_tokens=False)
        return Encoding(ids=encoded.ids, spans=encoded.offsets)

    def beginning(self) -> list[int]:
        """The ids that the tokenizer puts before every text: ``[bos]`` or nothing."""
        bos = self.tokenizer.bos_token_id
        return [bos] if bos is not None and self.tokenizer("").input_ids[:1] == [bos] else []

    def hidden(self, token_ids: Tensor) -> Tensor:
        """Final hidden states (B, S, D) of right-padded ``token_ids`` (B, S).

        No mask is needed: under causal attention a real token never sees the padding after it.
        """
        states: Tensor = self.network.base_model(input_ids=token_ids, use_cache=False).last_hidden_state
        return states

    @property
    def vocabulary(self) -> int:
        """How many logits there are, V."""
        return int(self.network.get_output_embeddings().weight.shape[0])

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits (N, V) of hidden states (N, D): in the model's dtype, or in float32 where that costs nothing."""
        head = self.network.get_output_embeddings()
        narrow = hidden.to(head.weight.dtype)
        if hidden.is_cuda and narrow.dtype is not torch.float32 and getattr(head, "bias", None) is None:
            logits = torch.mm(narrow, head.weight.T, out_dtype=torch.float32)
        else:
            logits = head(narrow)
        return _transform(logits, self.network.config)


def load_model(name: str, *, device: str = "auto", dtype: str = "auto", revision: str | None = None) -> LanguageModel:
    """Load a model by hub name or local folder.

    ``device`` is ``auto``, ``cpu`` or a CUDA device; ``dtype`` is ``auto`` (bfloat16 on CUDA, float32 on CPU) or one
    of DTYPES.

    Raises ModelNotFound or ModelUnsupported, each saying what to do.
    """
    place = device_of(name, device)
    kind = _dtype(name, dtype, place)
    with quiet():
        tokenizer = load_tokenizer(name, revision)
        network = _load_network(name, revision, kind).to(place).eval()
    model = LanguageModel(
        name=Path(name).name if Path(name).is_dir() else name,
        revision=fingerprint(Path(name)) if Path(name).is_dir() else commit(network),
        dtype=str(kind).removeprefix("torch."),
        device=place,
        window=_window(network.config),
        network=network,
        tokenizer=tokenizer,
    )
    _check_head(model)
    return model


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Read a GGUF file, dequantise it and write the model to ``folder`` as float32 safetensors.

    Needs the packages gguf and accelerate (the extra ``embedded``).
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The GGUF reader has a progress bar of its own that no setting of transformers reaches.
    with quiet(), redirect_stderr(io.StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
        source: Any = AutoModelForCausalLM.from_pretrained(str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32)
        settings = source.config.to_dict()
        for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
            settings.pop(key, None)
        # A model that was loaded from GGUF refuses to be saved; its weights in a fresh model do not.
        fresh = type(source)(type(source.config)(**settings)).to(torch.float32)
        fresh.load_state_dict(source.state_dict())
        fresh.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))


@contextmanager
def attending_by(network: Any, name: str) -> Iterator[None]:  # noqa: ANN401 - transformers' own dynamic type
    """Have a network attend by transformers' implementation ``name`` for as long as this lasts."""
    before = network.config._attn_implementation  # noqa: SLF001 - there is a setter, but nothing public to read
    network.set_attn_implementation(name)
    try:
        yield
    finally:
        network.set_attn_implementation(before)


def device_of(name: str, device: str) -> torch.device:
    """The device for the model of that name; ``auto`` is CUDA if there is any. Raises ModelUnsupported."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise ModelUnsupported(name, f"no such device: {device!r}; use auto, cpu or cuda") from error
    if place.type == "cuda" and not torch.cuda.is_available():
        raise ModelUnsupported(name, f"device {device!r} was asked for but CUDA is not available; use auto or cpu")
    return place


def _dtype(name: str, dtype: str, place: torch.device) -> torch.dtype:
    if dtype == "auto":
        return torch.bfloat16 if place.type == "cuda" else torch.float32
    if dtype not in DTYPES:
        raise ModelUnsupported(name, f"no such dtype: {dtype!r}; use auto or one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def load_tokenizer(name: str, revision: str | None) -> Any:  # noqa: ANN401 - transformers' own dynamic type
    """The fast tokenizer of a model. Raises ModelNotFound, and ModelUnsupported if it has none."""
    from transformers import AutoTokenizer  # here and below: seconds to import, which --help need not wait for

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise load_error(name, error) from error
    if not tokenizer.is_fast:
        raise ModelUnsupported(name, "its tokenizer gives no character offsets; choose a model with a fast tokenizer")
    return tokenizer


def _load_network(name: str, revision: str | None, kind: torch.dtype) -> Any:  # noqa: ANN401 - as above
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(
            name, revision=revision, dtype=kind, use_safetensors=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise load_error(name, error) from error


def load_error(name: str, error: Exception, kind: str = "a causal language model") -> ModelNotFound | ModelUnsupported:
    """What to raise for an error of transformers: what is wrong with the model of that name, and what to do."""
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            return ModelNotFound(name, "the folder holds no config.json; give the folder that holds the model's files")
        if not any(folder.glob("*.safetensors")):
            return ModelUnsupported(name, "the folder holds no .safetensors weights; no other format is loaded")
        return ModelUnsupported(name, f"cannot be loaded as {kind} ({type(error).__name__})")
    if isinstance(error, OSError):
        return ModelNotFound(
            name, "no such folder, and no such model in the local cache or the hub (or it has no safetensors weights)"
        )
    return ModelUnsupported(name, f"cannot be loaded as {kind} ({type(error).__name__})")


def _window(config: Any) -> int:  # noqa: ANN401 - as above
    stated = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(stated) if isinstance(stated, int) and stated > 0 else UNSTATED_WINDOW_TOKENS


def _transform(logits: Tensor, config: Any) -> Tensor:  # noqa: ANN401 - as above
    """What a few families do to logits after the output projection (Gemma, Granite, Cohere)."""
    text = config.get_text_config()
    if scaling := getattr(text, "logits_scaling", None):
        logits = logits / scaling
    if scale := getattr(text, "logit_scale", None):
        logits = logits * scale
    if cap := getattr(text, "final_logit_softcapping", None):
        logits = torch.tanh(logits / cap) * cap
    return logits


@torch.inference_mode()
def _check_head(model: LanguageModel) -> None:
    """Refuse a model whose logits are not what we compute from its hidden states."""
    ids = torch.arange(3, 9, device=model.device)[None]
    own = model.network(input_ids=ids, use_cache=False).logits[0].float()
    ours = model.logits(model.hidden(ids)[0]).float()
    if own.shape != ours.shape or (own - ours).abs().max() > HEAD_TOLERANCE[DTYPES[model.dtype]]:
        raise ModelUnsupported(model.name, "its logits are not a known function of its hidden states; choose another")


def commit(network: Any) -> str:  # noqa: ANN401 - as above
    """The revision at which a model was taken from the hub."""
    return str(getattr(network.config, "_commit_hash", None) or "unknown")


def fingerprint(folder: Path) -> str:
    """Name the weights in a local folder: a hash of its small files and of samples of its tensors.

    Samples, because reading 15 GB at every start would cost more than it tells; a fine-tuned model differs in
    nearly every block.
    """
    digest = hashlib.sha256()
    for name in ("config.json", "tokenizer.json"):
        if (folder / name).is_file():
            digest.update((folder / name).read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as file:
            for step in range(64):
                file.seek(size * step // 64)
                digest.update(file.read(65_536))
    return digest.hexdigest()


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and advice while loading, and leave its settings as they were."""
    from transformers.utils import logging as settings

    logging: Any = settings  # untyped

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
