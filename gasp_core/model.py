"""The language model that scores, and how any model is loaded.

Loads safetensors weights only and runs no code that comes with a model.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gasp_core.errors import ModelUnsupported
from gasp_core.fingerprint import fingerprint
from gasp_core.loading import CAUSAL, named_faults, require_nothing_beside, require_whole
from gasp_core.tokenizer import SURROGATE, control_tokens, load_tokenizer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Models without a stated window (state-space models, ALiBi) are read up to here.
UNSTATED_WINDOW_TOKENS = 32_768

# Read once when a model is loaded: whether its numbers are numbers shows on a text as it will read them.
PROBE_TEXT = "The museum opens at nine and closes at six. Tickets cost 12 euros; children under ten pay nothing."

# A model whose own logits differ from ours by more than this has a head that we do not know.
HEAD_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.5, torch.float16: 0.1}

# How far states may be from those of the same text with another one behind it, relative to their size: in 16 bits they
# were up to 0.02 apart for other reasons, and by reading in both directions a fifth and more.
ORDER_TOLERANCE = 0.1


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
        """Tokenise as text: without special tokens, and with none read out of it."""
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

        No mask is needed: under causal attention a real token never sees the padding after it. A few families choose
        what they attend to, or where a token stands, by the whole length: ``choose_passes`` finds them and pads none.
        """
        states: Tensor = self.network.base_model(input_ids=token_ids, use_cache=False).last_hidden_state
        return states

    @property
    def width(self) -> int:
        """How many numbers a final hidden state has, D."""
        return int(self.network.get_output_embeddings().weight.shape[1])

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
    with quiet(), named_faults(name):
        tokenizer = load_tokenizer(name, revision)
        network = _load_network(name, revision, kind).to(place).eval()
        folder = Path(name)
        model = LanguageModel(
            name=folder.name if folder.is_dir() else name,
            revision=fingerprint(folder, network.config, tokenizer) if folder.is_dir() else commit(name, revision),
            dtype=str(kind).removeprefix("torch."),
            device=place,
            window=_window(network.config),
            network=network,
            tokenizer=tokenizer,
        )
        _check_rows(model)
        _check_weights(model)
        _check_order(model)
        _check_head(model)
        _check_text(model)
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


def _load_network(name: str, revision: str | None, kind: torch.dtype) -> Any:  # noqa: ANN401 - transformers' own
    from transformers import AutoModelForCausalLM  # seconds to import, which --help need not wait for

    loaded: Any = AutoModelForCausalLM.from_pretrained(
        name,
        revision=revision,
        dtype=kind,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
        # Refused below, by name.
        ignore_mismatched_sizes=True,
    )
    network, told = loaded
    require_whole(name, told)
    require_nothing_beside(name, told)
    return network


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


def _check_rows(model: LanguageModel) -> None:
    """Refuse a model without a row for a token that a text may have: a device would stop at it amid the work.

    Control tokens are in no text, and some families' tokenizers have one more than their weights.
    """
    rows = min(model.vocabulary, int(model.network.get_input_embeddings().weight.shape[0]))
    control = control_tokens(model.tokenizer.backend_tokenizer)
    in_texts = (number for token, number in model.tokenizer.get_vocab().items() if token not in control)
    largest = max((*in_texts, *model.beginning()), default=0)
    if largest >= rows:
        raise ModelUnsupported(
            model.name,
            f"its tokenizer has ids up to {largest} and its weights only {rows} rows for them; take the tokenizer that"
            " belongs to these weights",
        )


@torch.inference_mode()
def _check_weights(model: LanguageModel) -> None:
    """Refuse weights that are not numbers, or too large to be one in this dtype."""
    for key, weight in model.network.named_parameters():
        # 8-bit numbers cannot be compared, and have no infinity in most forms.
        known = weight.is_floating_point() and torch.finfo(weight.dtype).bits >= 16
        if known and weight.numel() and not all(bound.isfinite() for bound in torch.aminmax(weight)):
            raise ModelUnsupported(
                model.name, f"its weight {key} is not finite in {model.dtype}; choose another dtype, or take it again"
            )


@torch.inference_mode()
def _check_head(model: LanguageModel) -> None:
    """Refuse a model whose logits are not what we compute from its hidden states."""
    ids = torch.arange(3, 9, device=model.device)[None]
    own = model.network(input_ids=ids, use_cache=False).logits[0].float()
    ours = model.logits(model.hidden(ids)[0]).float()
    if not own.isfinite().all():
        raise _not_finite(model)
    if own.shape != ours.shape or (own - ours).abs().max() > HEAD_TOLERANCE[DTYPES[model.dtype]]:
        raise ModelUnsupported(model.name, "its logits are not a known function of its hidden states; choose another")


@torch.inference_mode()
def _check_text(model: LanguageModel) -> None:
    """Refuse a model that computes no finite numbers from an ordinary text."""
    ids = torch.tensor([[*model.beginning(), *model.encode(PROBE_TEXT).ids]], device=model.device)
    if not model.logits(model.hidden(ids)[0]).isfinite().all():
        raise _not_finite(model)


@torch.inference_mode()
def _check_order(model: LanguageModel) -> None:
    """Refuse a model that knows what comes later in a text: it predicts nothing."""
    # A text: of tokens by their numbers, control tokens among them, rounding alone moves the states of some models far.
    ids = torch.tensor([[*model.beginning(), *model.encode(PROBE_TEXT).ids]], device=model.device)
    half = ids.shape[1] // 2
    alone, followed = model.hidden(ids[:, :half])[0].float(), model.hidden(ids)[0, :half].float()
    if (alone - followed).norm() > ORDER_TOLERANCE * alone.norm():
        raise ModelUnsupported(model.name, f"it reads a text in both directions, and is not {CAUSAL}; choose another")


def _not_finite(model: LanguageModel) -> ModelUnsupported:
    return ModelUnsupported(
        model.name, f"it computes infinities or no numbers in {model.dtype}; choose another dtype, or another model"
    )


def commit(name: str, revision: str | None) -> str:
    """The commit at which a model was taken from the hub, of a branch or tag; it is to be called behind loading it."""
    from huggingface_hub import try_to_load_from_cache  # half a second to import

    # Transformers tells it no more; what it loaded lies in a folder of that name.
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(found).parent.name if isinstance(found, str) else "unknown"


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
