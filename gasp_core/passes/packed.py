"""A decoder's own modules over packed segments, with our attention put in through transformers' registry.

In 16-bit dtypes the residual stream, norms and rotation are float32: the embedding's output is widened, and what goes
into a projection is narrowed to its weight's dtype. Adding a projection's 16-bit output to the residual then widens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.pytorch_utils import Conv1D

from gasp_core.model import attending_by
from gasp_core.passes.attention import Attention
from gasp_core.passes.pack import Pack
from gasp_core.passes.taps import Tap, Taps

ATTENTION_NAME = "gasp_packed"

# What attention may be asked for beyond the plain kind; ours does none of it.
UNKNOWN_OPTIONS = ("softcap", "sliding_window", "s_aux")


@dataclass(frozen=True, slots=True)
class _Forward:
    """The forward under way, for the attention that transformers calls."""

    pack: Pack
    attention: Attention


_current: ContextVar[_Forward | None] = ContextVar("packed_forward", default=None)


class PackedNetwork:
    """Gives the final states (R, D) that a pack asks for, with what ``taps`` read beside them.

    ``wide`` keeps residual and norms in float32. Outside its calls the network is as it was. A call raises what the
    network raises if its modules are not used to this, and ValueError if its attention is of a kind that ours does
    not know.
    """

    def __init__(
        self,
        network: Any,  # noqa: ANN401 - transformers' own
        attention: Attention,
        *,
        wide: bool,
        taps: Sequence[Tap] = (),
    ) -> None:
        AttentionInterface.register(ATTENTION_NAME, _attend)
        self._network = network
        self._attention = attention
        self._wide = wide
        self._taps = Taps(network, taps)
        self._projections = [one for one in network.base_model.modules() if isinstance(one, nn.Linear | Conv1D)]

    def reading(self, taps: Sequence[Tap]) -> PackedNetwork:
        """The same network with these taps. Raises ModelUnsupported if it has no such layers."""
        return PackedNetwork(self._network, self._attention, wide=self._wide, taps=taps)

    def __call__(self, pack: Pack) -> Tensor:
        """Final states (R, D), or (R, D + M) with the M numbers of all taps."""
        with ExitStack() as stack:
            stack.callback(_current.reset, _current.set(_Forward(pack, self._attention)))
            stack.enter_context(attending_by(self._network, ATTENTION_NAME))
            if self._wide:
                stack.enter_context(_widened(self._network, self._projections))
            beside = stack.enter_context(self._taps.beside(lambda states: states[0, pack.keep]))
            states: Tensor = self._network.base_model(
                input_ids=pack.ids[None], position_ids=pack.positions[None], use_cache=False
            ).last_hidden_state
            return beside(states[0, pack.keep])


@contextmanager
def _widened(network: Any, projections: Sequence[nn.Module]) -> Iterator[None]:  # noqa: ANN401 - as above
    """Keep the residual stream in float32 for as long as this lasts."""
    narrow = _Narrow()
    hooks = [network.get_input_embeddings().register_forward_hook(lambda _module, _inputs, embedded: embedded.float())]
    hooks += [projection.register_forward_pre_hook(narrow) for projection in projections]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Narrow:
    """Gives projections their input in the dtype of their weights. Several read the same states; the last are kept."""

    def __init__(self) -> None:
        self._last: tuple[Tensor, Tensor] | None = None

    def __call__(self, projection: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        dtype = cast("torch.dtype", projection.weight.dtype)
        states: Tensor = inputs[0]
        if self._last is None or self._last[0] is not states or self._last[1].dtype is not dtype:
            self._last = (states, states.to(dtype))
        return (self._last[1], *inputs[1:])


def _attend(
    module: Any,  # noqa: ANN401 - as above
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: Tensor | None,
    scaling: float | None = None,
    **options: Any,  # noqa: ANN401 - each family passes its own
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: (1, heads, N, size) in, (1, N, heads, size) out."""
    unknown = [name for name in UNKNOWN_OPTIONS if options.get(name) is not None]
    forward = _current.get()
    if unknown or forward is None:
        raise ValueError(f"packed attention with {', '.join(unknown) or 'nothing packed'}")
    # The rotation leaves queries and keys wide.
    queries, keys, values = (heads[0].transpose(0, 1).to(value.dtype) for heads in (query, key, value))
    forward.pack.store(module.layer_idx, keys, values)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return forward.attention(queries, keys, values, pack=forward.pack, layer=module.layer_idx, scale=scale)[None], None


def is_narrow(dtype: torch.dtype) -> bool:
    """Whether a dtype is so coarse that sums over layers should be kept in float32."""
    return torch.finfo(dtype).bits < 32
