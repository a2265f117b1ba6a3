"""Which way of running passes suits a model: the quickest whose numbers are the model's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from gasp_core.model import DTYPES, LanguageModel
from gasp_core.passes.attention import Attention, blocked_attention, segment_attention, varlen_attention
from gasp_core.passes.pack import KeyValues, Pack, Segment
from gasp_core.passes.packed import PackedNetwork, is_narrow
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.shared import SharedPrefixPasses
from gasp_core.passes.taps import Tap
from gasp_core.passes.trunks import TrunkCache
from gasp_core.plan import Plan

# Tokens a forward. A CPU gains nothing from more; a GPU wants to be full.
CPU_TOKENS = 2_048
CUDA_TOKENS = 16_384

CPU_CACHE_BYTES = 256 * 1024 * 1024

# How far the final states of a branch may be from those of its whole text, and those from the model's own, relative to
# their size. In bfloat16 the first was up to 0.02, the second up to 0.06, and real faults began at 0.11.
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}
OWN_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.15, torch.float16: 3e-2}

# Rotary positions that are other ones in a longer text, and so in one that is padded.
_LENGTH_DEPENDENT = {"dynamic", "longrope"}
# How families call the number of tokens that a token attends to at most, chosen by what they say.
_SELECTIONS = ("index_topk", "keep_window_size")

_Network = Callable[[Pack], Tensor]


class Passes(Protocol):
    """Runs the prompts of plans. ``can_hide``: those with hidden chunks, too."""

    can_hide: bool

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        """Give per plan the hidden states (variants, A, D + M) that predict its answer under each of its prompts.

        The D numbers of the final state come first, then the M that taps read on the way, in their order.
        """
        ...

    def reading(self, taps: Sequence[Tap]) -> Passes:
        """The same passes with these taps. Raises ModelUnsupported if the model has no such layers."""
        ...

    def forget(self) -> None:
        """Let go of everything that is kept for later."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """The passes, and in words why these."""

    passes: Passes
    reason: str


def choose_passes(model: LanguageModel, *, max_tokens: int | None = None, cache_bytes: int | None = None) -> Choice:
    """Choose by trying: a way of sharing prefixes must reproduce the model's own states on a small example.

    A model whose states or positions do not allow it is run the plain way, one by one if it minds padding.
    ``max_tokens`` bounds a forward and ``cache_bytes`` the memory for contexts that may come again (None: by device;
    on CUDA a quarter of what is free).
    """
    on_cuda = model.device.type == "cuda"
    max_tokens = max_tokens or (CUDA_TOKENS if on_cuda else CPU_TOKENS)
    if cache_bytes is None:
        cache_bytes = torch.cuda.mem_get_info(model.device)[0] // 4 if on_cuda else CPU_CACHE_BYTES
    reason = _obstacle(model.network.config.get_text_config(), model.window)
    if reason is not None:
        return _plain(model, max_tokens, reason)
    problems = []
    for wide, attention in _candidates(model):
        network = PackedNetwork(model.network, attention, wide=wide)
        way = f"{attention.__name__.replace('_', ' ')}{', residual in float32' if wide else ''}"
        problem = _problem(network, model)
        if problem is None:
            cache = TrunkCache(cache_bytes)
            passes = SharedPrefixPasses(network, model.device, max_tokens=max_tokens, cache=cache)
            return Choice(passes, f"shared prefixes by {way}")
        problems.append(f"{way}: {problem}")
    return _plain(model, max_tokens, f"no way to share prefixes ({'; '.join(problems)})")


def _plain(model: LanguageModel, max_tokens: int, reason: str) -> Choice:
    """Whole prompts, padded to a common length if that is nothing to this model."""
    if _minds_padding(model):
        return Choice(
            PlainPasses(model, 1), f"plain passes: {reason}; one prompt at a time, as padding moves its states"
        )
    return Choice(PlainPasses(model, max_tokens), f"plain passes: {reason}")


@torch.inference_mode()
def _minds_padding(model: LanguageModel) -> bool:
    """Whether the states of a text depend on what is padded behind it. Tried at each length at which that may begin."""
    config = model.network.config.get_text_config()
    if _LENGTH_DEPENDENT & _rotations(config):
        return True
    for length in sorted({0, *_turns(config)}):
        short, long = (
            [5 + at * 37 % (model.vocabulary - 5) for at in range(min(length + more, model.window))]
            for more in (24, 96)
        )
        rows = torch.tensor([short + [0] * (len(long) - len(short)), long], device=model.device)
        padded = model.hidden(rows)[0, : len(short)]
        alone = model.hidden(torch.tensor([short], device=model.device))[0]
        if _distance(padded.float(), alone.float()) > TOLERANCE[DTYPES[model.dtype]]:
            return True
    return False


def _turns(config: Any) -> set[int]:  # noqa: ANN401 - transformers' own dynamic type
    """The lengths behind which some families choose among the tokens that they attend to."""
    found = (getattr(config, name, None) for name in _SELECTIONS)
    return {length for length in found if isinstance(length, int)}


def _rotations(config: Any) -> set[str]:  # noqa: ANN401 - as above
    """The kinds of rotary positions of a model; some have one for each kind of layer."""
    rotary = getattr(config, "rope_parameters", None) or {}
    every = [rotary, *(one for one in rotary.values() if isinstance(one, dict))]
    return {str(one["rope_type"]) for one in every if "rope_type" in one}


def _obstacle(config: Any, window: int) -> str | None:  # noqa: ANN401 - transformers' own dynamic type
    """Why prefixes cannot be shared by this model although a short example might not tell."""
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - {"full_attention"}:
        return f"it has layers of {', '.join(sorted(kinds - {'full_attention'}))}"
    sliding = getattr(config, "sliding_window", None)
    if not kinds and sliding and sliding < window and getattr(config, "use_sliding_window", True):
        return "it has a sliding window"
    if _LENGTH_DEPENDENT & _rotations(config):
        return "its positions depend on the length of the text"
    if any(length < window for length in _turns(config)):
        return "it chooses what it attends to in a long text"
    return None


def _candidates(model: LanguageModel) -> Iterator[tuple[bool, Attention]]:
    """Whether to keep the residual wide, and the attention; best first."""
    on_cuda = model.device.type == "cuda"
    attentions: list[Attention] = [varlen_attention, segment_attention] if on_cuda else [blocked_attention]
    widths = (True, False) if is_narrow(DTYPES[model.dtype]) else (False,)
    return ((wide, attention) for wide in widths for attention in attentions)


@torch.inference_mode()
def _problem(network: _Network, model: LanguageModel) -> str | None:
    """What is wrong with a way of running the model: tried on a trunk, its branches, and the same texts as wholes.

    A branch and its whole text go through the same modules and must agree closely. The model's own forward rounds
    elsewhere in 16-bit dtypes; a token that is not seen, or out of place, is farther off than that.
    """
    trunk, tail = list(range(5, 45)), list(range(7, 20))
    contents = KeyValues(len(trunk))
    places = (0, 17, len(trunk))
    try:
        network(Pack([Segment(trunk, trunk=contents, extends=0)], model.device))
        branches = [Segment(tail, at, contents, ((0, at),) if at else (), range(len(tail))) for at in places]
        texts = [Segment(trunk[:at] + tail, keep=range(at, at + len(tail))) for at in places]
        shared, whole = (network(Pack(segments, model.device)).float() for segments in (branches, texts))
    except (torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except (AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__
    own = torch.cat([model.hidden(torch.tensor([text.ids], device=model.device))[0, text.keep] for text in texts])
    dtype = DTYPES[model.dtype]
    if _distance(shared, whole) > TOLERANCE[dtype]:
        return "a branch differs from its whole text"
    if _distance(whole, own.float()) > OWN_TOLERANCE[dtype]:
        return "its states differ from its own"
    return None


def _distance(left: Tensor, right: Tensor) -> float:
    return float((left - right).norm() / right.norm())
