"""Segments of text that go through the network in one forward, each after a part of a trunk that went before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, pairwise

import torch
from torch import Tensor

Span = tuple[int, int]


class KeyValues:
    """Keys and values of a trunk, per layer: two tensors (capacity, key-value heads, head size)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        return sum(tensor.nbytes for pair in self._layers.values() for tensor in pair)

    def write(self, layer: int, at: int, keys: Tensor, values: Tensor) -> None:
        """Keep keys and values (n, heads, size) of one layer for the trunk's tokens from ``at`` on."""
        if layer not in self._layers:
            self._layers[layer] = (
                keys.new_empty(self.capacity, *keys.shape[1:]),
                values.new_empty(self.capacity, *values.shape[1:]),
            )
        for kept, new in zip(self._layers[layer], (keys, values), strict=True):
            kept[at : at + len(new)] = new

    def read(self, layer: int, span: Span) -> tuple[Tensor, Tensor]:
        """Views of keys and values of one layer for a span of the trunk's tokens."""
        keys, values = self._layers[layer]
        return keys[slice(*span)], values[slice(*span)]

    def front_of(self, other: KeyValues, length: int) -> None:
        """Take over the first ``length`` tokens of another trunk."""
        for layer in other._layers:
            self.write(layer, 0, *other.read(layer, (0, length)))


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive tokens. Each sees the spans ``sees`` of ``trunk`` and the segment's own tokens up to itself.

    ``position`` is the position of the first token. ``keep`` are the tokens of the segment whose final state is asked
    for. With ``extends`` the segment's keys and values are written to the trunk from there on.
    """

    ids: Sequence[int]
    position: int = 0
    trunk: KeyValues | None = None
    sees: tuple[Span, ...] = ()
    keep: range = range(0)
    extends: int | None = None

    @property
    def seen(self) -> int:
        """How many tokens of the trunk the segment sees."""
        return sum(end - start for start, end in self.sees)


@dataclass(frozen=True)
class Pack:
    """Segments laid out one after the other, N tokens in all, on one device."""

    segments: Sequence[Segment]
    device: torch.device
    spans: tuple[Span, ...] = field(init=False)

    def __post_init__(self) -> None:
        ends = accumulate((len(segment.ids) for segment in self.segments), initial=0)
        object.__setattr__(self, "spans", tuple(pairwise(ends)))

    @property
    def ids(self) -> Tensor:
        """Token ids (N,)."""
        return self._numbers[0]

    @property
    def positions(self) -> Tensor:
        """Positions (N,)."""
        return self._numbers[1]

    @property
    def keep(self) -> Tensor:
        """Indices (R,) of the tokens whose states are asked for, segment by segment."""
        return self._numbers[2]

    @property
    def query_ends(self) -> Tensor:
        """Where each segment begins and the last one ends (segments + 1,), as int32."""
        return self._numbers[3].int()

    @property
    def key_ends(self) -> Tensor:
        """As ``query_ends``, with the tokens of the trunk that each segment sees put before it."""
        return self._numbers[4].int()

    @cached_property
    def _numbers(self) -> tuple[Tensor, ...]:
        """All of the above in one copy to the device, which then need not be waited for later."""
        segments = self.segments
        parts = [
            [token for one in segments for token in one.ids],
            [place for one in segments for place in range(one.position, one.position + len(one.ids))],
            [start + row for (start, _), one in zip(self.spans, segments, strict=True) for row in one.keep],
            [0, *(end for _, end in self.spans)],
            list(accumulate((one.seen + len(one.ids) for one in segments), initial=0)),
        ]
        joined = torch.tensor(list(chain.from_iterable(parts)))
        if self.device.type == "cuda":
            joined = joined.pin_memory()
        there = joined.to(self.device, non_blocking=True)
        return torch.split(there, [len(part) for part in parts])

    @cached_property
    def longest_query(self) -> int:
        """Tokens of the longest segment."""
        return max(len(one.ids) for one in self.segments)

    @cached_property
    def longest_key(self) -> int:
        """Tokens of the longest segment with what it sees."""
        return max(one.seen + len(one.ids) for one in self.segments)

    def store(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Write the keys and values (N, heads, size) of the segments that extend their trunk."""
        for (start, end), one in zip(self.spans, self.segments, strict=True):
            if one.extends is not None and one.trunk is not None:
                one.trunk.write(layer, one.extends, keys[start:end], values[start:end])

    def seen_by(self, index: int, layer: int, keys: Tensor, values: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The pieces of keys and values that one segment attends to, in order: of its trunk, then its own."""
        one, (start, end) = self.segments[index], self.spans[index]
        pieces = [one.trunk.read(layer, span) for span in one.sees] if one.trunk is not None else []
        pieces.append((keys[start:end], values[start:end]))
        return [piece[0] for piece in pieces], [piece[1] for piece in pieces]
