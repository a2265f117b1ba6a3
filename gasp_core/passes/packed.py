"""A decoder's own modules over packed segments, with our attention put in through transformers' registry.

In 16-bit dtypes the residual stream, norms and rotation are float32: the embedding's output is widened, and what goes
into a projection is narrowed to its weight's dtype. Adding a projection's 16-bit output to the residual then widens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import AttentionInterface
from transformers.pytorch_utils import Conv1D

from gasp_core.passes.attention import Attention
from gasp_core.passes.pack import Pack

ATTENTION_NAME = "gasp_packed"

# What attention may be asked for beyond the plain kind; ours does none of it.
UNKNOWN_OPTIONS = ("softcap", "sliding_window", "s_aux")


@dataclass(frozen=True, slots=True)
class _Forward:
    """The forward under way, for the hooks that transformers calls."""

    pack: Pack
    attention: Attention
    wide: bool
    # Several projections read the same states; the last narrowed ones are kept for the next.
    narrowed: dict[torch.dtype, tuple[Tensor, Tensor]] = field(default_factory=dict)


_current: ContextVar[_Forward | None] = ContextVar("packed_forward", default=None)


class PackedNetwork:
    """Gives the final states (R, D) that a pack asks for.

    ``wide`` keeps residual and norms in float32. Outside its calls the network computes as it always did. A call
    raises what the network raises if its modules are not used to this, and ValueError if its attention is of a kind
    that ours does not know.
    """

    def __init__(self, network: Any, attention: Attention, *, wide: bool) -> None:  # noqa: ANN401 - transformers' own
        AttentionInterface.register(ATTENTION_NAME, _attend)
        self._network = network
        self._attention = attention
        self._wide = wide
        self._hooks: list[RemovableHandle] = []
        if wide:
            self._hooks.append(network.get_input_embeddings().register_forward_hook(_widen))
            projections = (one for one in network.base_model.modules() if isinstance(one, nn.Linear | Conv1D))
            self._hooks += [one.register_forward_pre_hook(_narrow) for one in projections]

    def release(self) -> None:
        """Take the hooks out of the network, which this is not used for any more."""
        for hook in self._hooks:
            hook.remove()

    def __call__(self, pack: Pack) -> Tensor:
        """Final states (R, D)."""
        token = _current.set(_Forward(pack, self._attention, self._wide))
        try:
            with _attending_by(self._network, ATTENTION_NAME):
                states: Tensor = self._network.base_model(
                    input_ids=pack.ids[None], position_ids=pack.positions[None], use_cache=False
                ).last_hidden_state
        finally:
            _current.reset(token)
        return states[0, pack.keep]


@contextmanager
def _attending_by(network: Any, name: str) -> Iterator[None]:  # noqa: ANN401 - as above
    before = network.config._attn_implementation  # noqa: SLF001 - there is a setter, but nothing public to read
    network.set_attn_implementation(name)
    try:
        yield
    finally:
        network.set_attn_implementation(before)


def _widen(_module: nn.Module, _arguments: tuple[Any, ...], embedded: Tensor) -> Tensor | None:
    forward = _current.get()
    return embedded.float() if forward is not None and forward.wide else None


def _narrow(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    forward = _current.get()
    if forward is None or not forward.wide:
        return None
    states: Tensor = arguments[0]
    dtype = cast("torch.dtype", module.weight.dtype)
    if dtype not in forward.narrowed or forward.narrowed[dtype][0] is not states:
        forward.narrowed[dtype] = (states, states.to(dtype))
    return (forward.narrowed[dtype][1], *arguments[1:])


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
