"""Texts that were looked up lately, so that a document that many exchanges name is fetched once in a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

# A text that was changed where it is kept is noticed within this time, and one that was not there sooner.
KEEP_S = 600.0
KEEP_MISSING_S = 30.0
MAX_CHARS = 32 * 1024 * 1024
MAX_ENTRIES = 100_000
# Ids that are asked for at once.
IDS_AT_ONCE = 200

Fetch = Callable[[Sequence[str]], Mapping[str, str]]
"""The texts of those ids that there are. Raises what the document store raises."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """``text`` is None for a document that there was none of."""

    text: str | None
    until: float


class CachedDocuments:
    """Looks documents up by id. Not for use from several threads at once."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._chars = 0

    def texts(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of those ids that there are. Raises what the document store raises."""
        now = self._clock()
        wanted = list(dict.fromkeys(ids))
        # Taken out first: what is fetched may push others out.
        found = {one: self._entries[one] for one in wanted if one in self._entries and self._entries[one].until > now}
        missing = [one for one in wanted if one not in found]
        for start in range(0, len(missing), IDS_AT_ONCE):
            part = missing[start : start + IDS_AT_ONCE]
            texts = self._fetch(part)
            for one in part:
                text = texts.get(one)
                found[one] = _Entry(text, now + (KEEP_MISSING_S if text is None else KEEP_S))
        for one, entry in found.items():
            self._keep(one, entry)
        return {one: entry.text for one, entry in found.items() if entry.text is not None}

    def _keep(self, identifier: str, entry: _Entry) -> None:
        """Remember it as the newest; forget the oldest."""
        self._forget(identifier)
        self._entries[identifier] = entry
        self._chars += len(entry.text or "")
        while self._chars > MAX_CHARS or len(self._entries) > MAX_ENTRIES:
            self._forget(next(iter(self._entries)))

    def _forget(self, identifier: str) -> None:
        entry = self._entries.pop(identifier, None)
        self._chars -= len(entry.text or "") if entry else 0
