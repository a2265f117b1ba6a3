"""Names as other languages and habits write them: ``retrievedContexts``, ``Retrieved-Contexts``."""

from __future__ import annotations

import re
from functools import cache

from schemas.payload import JsonObject

_MAX_NAME_CHARS = 64
_MAX_RESPELLED = 1000
_NOT_LETTERS = re.compile(r"[_\-\s]")


def respelled(row: JsonObject, names: tuple[str, ...]) -> JsonObject:
    """Return the row with names that differ from known ones in case, ``_``, ``-`` and spaces alone spelled as those.

    A name that is there as it is known stays the one that counts. A row with very many fields stays as it is.
    """
    if len(row) > _MAX_RESPELLED:
        return row
    known = _spellings(names)
    taken = set(row)
    result: JsonObject = {}
    for name, value in row.items():
        spelled = known.get(name) or known.get(_letters(name), name)
        if spelled != name and spelled in taken:
            spelled = name
        taken.add(spelled)
        result[spelled] = value
    return result


@cache
def _spellings(names: tuple[str, ...]) -> dict[str, str]:
    """Each name by itself, and by its letters alone; of two with the same letters the first counts."""
    return {**{_letters(name): name for name in reversed(names)}, **{name: name for name in names}}


def _letters(name: str) -> str:
    return _NOT_LETTERS.sub("", name).lower() if len(name) <= _MAX_NAME_CHARS else name
