"""Trunks read lately, for answers that share their context: retries, several candidates, attribution after scoring."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import torch
from torch import Tensor

from gasp_core.passes.pack import KeyValues

# A shorter common beginning is not worth a copy; every prompt shares its first words.
MIN_SHARED_TOKENS = 64


class TrunkCache:
    """Keys and values by token ids, at most ``max_bytes`` of them; the least recently used go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._trunks: OrderedDict[tuple[int, ...], tuple[Tensor, KeyValues]] = OrderedDict()

    def find(self, ids: Sequence[int]) -> tuple[KeyValues | None, int]:
        """The trunk with the longest common beginning, and how many tokens that is; (None, 0) if too few."""
        wanted = torch.tensor(ids)
        shared = {key: shared_length(wanted, known) for key, (known, _) in self._trunks.items()}
        best = max(shared, key=lambda key: shared[key], default=None)
        if best is None or shared[best] < min(MIN_SHARED_TOKENS, len(ids)):
            return None, 0
        self._trunks.move_to_end(best)
        return self._trunks[best][1], shared[best]

    def keep(self, ids: Sequence[int], trunk: KeyValues) -> None:
        """Remember a trunk, and forget others until all fit. One that does not fit by itself is not kept."""
        self._trunks[tuple(ids)] = (torch.tensor(ids), trunk)
        self._trunks.move_to_end(tuple(ids))
        while self.size_bytes > self._max_bytes:
            self._trunks.popitem(last=False)

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        return sum(trunk.size_bytes for _, trunk in self._trunks.values())


def shared_length(left: Tensor, right: Tensor) -> int:
    """How many tokens two sequences (n,) and (m,) have in common at their beginning."""
    length = min(len(left), len(right))
    different = (left[:length] != right[:length]).nonzero()
    return int(different[0]) if len(different) else length
