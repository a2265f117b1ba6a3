"""Attention of packed segments to their trunks and themselves, one way per device. All give the same numbers.

A segment's keys are those of the trunk that it sees followed by its own, so its mask is causal and aligned at the
end: the last token sees everything. No mask over the whole pack is ever formed.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right

from gasp_core.passes.pack import Pack

# Query rows of one block: scores of a block and of all heads fit a core's cache.
BLOCK_ROWS = 64
NARROW_BLOCK_ROWS = 128


class Attention(Protocol):
    """Attends queries (N, heads, size) to keys and values (N, key-value heads, size); gives (N, heads, size).

    The pack's trunks hold what went before.
    """

    __name__: str

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, *, pack: Pack, layer: int, scale: float) -> Tensor:
        """Attend."""
        ...


def blocked_attention(query: Tensor, key: Tensor, value: Tensor, *, pack: Pack, layer: int, scale: float) -> Tensor:
    """For CPUs: blocks of query rows by matrix products, with the query heads of a key head folded into rows.

    torch's own kernel reaches 62-78 GFLOP/s a core here whatever the dtype, this 78-84 in float32 and 154-205 in
    bfloat16, and the columns after a block are never computed.
    """
    out = torch.empty_like(query)
    for index, (start, end) in enumerate(pack.spans):
        keys, values = pack.seen_by(index, layer, key, value)
        _attend_segment(
            query[start:end],
            torch.cat([piece.permute(1, 2, 0) for piece in keys], dim=2),
            torch.cat([piece.permute(1, 0, 2) for piece in values], dim=1),
            scale,
            out[start:end],
        )
    return out


def _attend_segment(query: Tensor, key: Tensor, value: Tensor, scale: float, out: Tensor) -> None:
    """Attend (n, heads, size) to keys (key heads, size, m) and values (key heads, m, size), m >= n, into ``out``."""
    length, heads, size = query.shape
    key_heads, _, seen = key.shape
    fold = heads // key_heads
    before = seen - length
    folded = (query * scale).view(length, key_heads, fold, size).permute(1, 2, 0, 3)
    result = out.view(length, key_heads, fold, size).permute(1, 2, 0, 3)
    rows = BLOCK_ROWS if query.dtype is torch.float32 else NARROW_BLOCK_ROWS
    for start, end in pairwise(_block_ends(before, length, rows)):
        queries = folded[:, :, start:end].reshape(key_heads, fold * (end - start), size)
        scores = torch.matmul(queries, key[:, :, : before + end]).view(key_heads, fold, end - start, before + end)
        future = torch.ones(end - start, end - start, dtype=torch.bool, device=query.device).triu_(1)
        scores[..., before + start :].masked_fill_(future, -math.inf)
        # The kernel works in float32 inside, whatever goes in and out.
        weights = torch.softmax(scores, dim=-1).view(key_heads, fold * (end - start), before + end)
        mixed = torch.matmul(weights, value[:, : before + end])
        result[:, :, start:end] = mixed.view(key_heads, fold, end - start, size)


def _block_ends(before: int, length: int, rows: int) -> list[int]:
    """Cut into blocks so that what a block sees is a multiple of its ``rows``, but for the last one.

    Libraries compile and keep a kernel per shape; so there are few.
    """
    return [0, *range(rows - before % rows, length, rows), length]


def varlen_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    pack: Pack,
    layer: int,
    scale: float,
) -> Tensor:
    """For CUDA devices and 16-bit dtypes: all segments in one call of the variable-length flash kernel."""
    from torch.nn.attention.varlen import varlen_attn

    # Without split keys a sequence's numbers do not depend on its neighbours. Older releases know neither option, and
    # take grouped heads as they are.
    wanted: dict[str, Any] = {"enable_gqa": True, "num_splits": 1}
    options = {name: value for name, value in wanted.items() if name in _parameters(varlen_attn)}
    seen = [pack.seen_by(index, layer, key, value) for index in range(len(pack.segments))]
    attended = varlen_attn(
        query,
        torch.cat([piece for keys, _ in seen for piece in keys]),
        torch.cat([piece for _, values in seen for piece in values]),
        pack.query_ends,
        pack.key_ends,
        pack.longest_query,
        pack.longest_key,
        scale=scale,
        window_size=(-1, 0),
        **options,
    )
    return attended if isinstance(attended, Tensor) else attended[0]


@cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def segment_attention(query: Tensor, key: Tensor, value: Tensor, *, pack: Pack, layer: int, scale: float) -> Tensor:
    """For any device: torch's scaled dot-product attention, a segment at a time."""
    out = torch.empty_like(query)
    for index, (start, end) in enumerate(pack.spans):
        keys, values = (torch.cat(pieces).transpose(0, 1)[None] for pieces in pack.seen_by(index, layer, key, value))
        rows = functional.scaled_dot_product_attention(
            query[start:end].transpose(0, 1)[None],
            keys,
            values,
            attn_mask=causal_lower_right(end - start, keys.shape[2]),
            scale=scale,
            enable_gqa=True,
        )
        out[start:end] = rows[0].transpose(0, 1)
    return out
