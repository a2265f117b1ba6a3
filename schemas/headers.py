"""Kafka headers: a sequence of names with bytes, where a name may come twice and the bytes may be absent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from schemas.text import REPLACEMENT

Headers: TypeAlias = Iterable[tuple[str, bytes | None]]


def header_texts(headers: Headers, *, spelled: bool = False) -> dict[str, str]:
    """Return the headers that have bytes, as text; the first of a name wins.

    Bytes that are no UTF-8 are replaced or, ``spelled``, written as escapes; so is NUL.
    """
    errors, nul = ("backslashreplace", "\\x00") if spelled else ("replace", REPLACEMENT)
    texts: dict[str, str] = {}
    for name, value in headers:
        if value is not None:
            texts.setdefault(name, value.decode(errors=errors).replace("\x00", nul))
    return texts


def without_first(headers: Headers, names: Iterable[str]) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers but for the first of each of ``names``."""
    own = set(names)
    kept: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        if name in own:
            own.remove(name)
        else:
            kept.append((name, value))
    return tuple(kept)
