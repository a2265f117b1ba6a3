"""Schemas that were looked up before. A registry never changes what an id means, so they are kept."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from schemas.encodings.schema import Schema, SchemaKey, SchemaSource

MAX_SCHEMAS = 1_000
# An id that nobody knew may be given to a schema later.
KEEP_MISSING_S = 10.0


@dataclass(frozen=True, slots=True)
class _Entry:
    """``schema`` is None for a key that nobody knew."""

    schema: Schema | None
    until: float


class CachedSchemas:
    """Asks a source for each key once. Not for use from several threads at once."""

    def __init__(self, source: SchemaSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._entries: OrderedDict[SchemaKey, _Entry] = OrderedDict()

    def look_up(self, key: SchemaKey) -> Schema | None:
        """Return the schema, or None if the source knows none. Raises what the source raises, which is not kept."""
        entry = self._entries.get(key)
        if entry is None or entry.until <= self._clock():
            schema = self._source.look_up(key)
            entry = _Entry(schema, float("inf") if schema is not None else self._clock() + KEEP_MISSING_S)
            self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_SCHEMAS:
            self._entries.popitem(last=False)
        return entry.schema
