"""Trunks read lately, for answers that share their context: retries, several candidates, attribution after scoring."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from gasp_core.passes.pack import KeyValues

# A shorter common beginning is not worth a copy; every prompt shares its first words.
MIN_SHARED_TOKENS = 64


class TrunkCache:
    """Keys and values by token ids, at most ``max_bytes`` of them; the least recently used go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._trunks: OrderedDict[tuple[int, ...], KeyValues] = OrderedDict()
        self._by_beginning: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self.size_bytes = 0

    def find(self, ids: Sequence[int]) -> tuple[KeyValues | None, int]:
        """The trunk with the longest common beginning, and how many tokens that is; (None, 0) if too few."""
        alike = self._by_beginning.get(_beginning(ids), [])
        best = max(alike, key=lambda known: shared_length(known, ids), default=None)
        if best is None:
            return None, 0
        self._trunks.move_to_end(best)
        return self._trunks[best], shared_length(best, ids)

    def keep(self, ids: Sequence[int], trunk: KeyValues) -> None:
        """Remember a trunk, and forget others until all fit. One that does not fit by itself is not kept."""
        key = tuple(ids)
        if key in self._trunks:
            self._forget(key)
        self._trunks[key] = trunk
        self._by_beginning.setdefault(_beginning(ids), []).append(key)
        self.size_bytes += trunk.size_bytes
        while self.size_bytes > self._max_bytes:
            self._forget(next(iter(self._trunks)))

    def clear(self) -> None:
        """Forget all of them."""
        self._trunks.clear()
        self._by_beginning.clear()
        self.size_bytes = 0

    def _forget(self, key: tuple[int, ...]) -> None:
        self.size_bytes -= self._trunks.pop(key).size_bytes
        alike = self._by_beginning[_beginning(key)]
        alike.remove(key)
        if not alike:
            del self._by_beginning[_beginning(key)]


def _beginning(ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(ids[:MIN_SHARED_TOKENS])


def shared_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginning."""
    length = min(len(left), len(right))
    # Slices compare at the speed of C, so the place is found by halving.
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        if list(left[low:middle]) == list(right[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low
