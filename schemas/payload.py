"""From untrusted bytes to a JSON value, in time linear in their length."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import orjson
from pydantic import JsonValue

from schemas.errors import NoValue, UnusablePayload
from schemas.reject_reason import RejectReason
from schemas.repair import Repair

JsonObject: TypeAlias = dict[str, JsonValue]

# Far above any logging format, far below where a recursive reader of the result would fail.
MAX_DEPTH = 100

_BOM = b"\xef\xbb\xbf"
_NUL_ESCAPE = rb"\u0000"
_REPLACEMENT_ESCAPE = rb"\ufffd"

# Possessive, and a string may end with the document, so that no text is read twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = re.compile(_HIGH + rb"(?!" + _LOW + rb")|(?<!" + _HIGH + rb")" + _LOW)
_BACKSLASH_ESCAPE = rb"\\"
_NEVER_IN_UTF8 = b"\xff"

_NON_FINITE_WORD = re.compile(r"-?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A JSON value: numbers finite, strings storable, at most MAX_DEPTH deep; and what was repaired to get it."""

    value: JsonValue
    repairs: tuple[Repair, ...] = ()


def present(value: bytes | None, *, max_bytes: int) -> bytes:
    """Return the value if there is one of at most ``max_bytes``. Raises NoValue or UnusablePayload (too_large)."""
    if value is None:
        raise NoValue("the message has no value")
    if len(value) > max_bytes:
        raise UnusablePayload(RejectReason.TOO_LARGE, f"{len(value)} bytes, the limit is {max_bytes}")
    return value


def parse_json(text: bytes, *, spelled: bool = False) -> Parsed:
    """Parse UTF-8 JSON. Of a key that comes twice the last counts; integers of 64 bits and more become floats.

    ``spelled`` leaves characters that cannot be stored as the escapes that they are written with, where otherwise all
    of them become the same character.
    Raises UnusablePayload: empty_value, invalid_utf8, invalid_json, non_finite_number or too_deep.
    """
    text, repairs = _without_bom(text)
    if not text.strip():
        raise UnusablePayload(RejectReason.EMPTY_VALUE, "nothing but white space")
    _check_depth(text)
    if _NUL_ESCAPE in text:
        text, repairs = _replace_unstorable(text, repairs, spelled=spelled)
    try:
        return Parsed(orjson.loads(text), repairs)
    except orjson.JSONDecodeError as error:
        return _parse_repaired(text, repairs, error, spelled=spelled)


def _without_bom(text: bytes) -> tuple[bytes, tuple[Repair, ...]]:
    return (text[len(_BOM) :], (Repair.BOM,)) if text.startswith(_BOM) else (text, ())


def _check_depth(text: bytes) -> None:
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return
    brackets = _STRING.sub(b"", text).translate(None, _NOT_BRACKETS)
    if max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0) > MAX_DEPTH:
        raise UnusablePayload(RejectReason.TOO_DEEP, f"nested deeper than {MAX_DEPTH}")


def _parse_repaired(
    text: bytes, repairs: tuple[Repair, ...], error: orjson.JSONDecodeError, *, spelled: bool
) -> Parsed:
    repaired, repairs = _replace_unstorable(text, repairs, spelled=spelled)
    if repaired == text:
        raise _unusable(text, error)
    try:
        return Parsed(orjson.loads(repaired), repairs)
    except orjson.JSONDecodeError as second:
        raise _unusable(repaired, second) from None


def _replace_unstorable(text: bytes, repairs: tuple[Repair, ...], *, spelled: bool) -> tuple[bytes, tuple[Repair, ...]]:
    r"""Replace each ``\u0000`` and each half of a surrogate pair by ``\ufffd``: one character for one character.

    Escaped backslashes are put aside first, so that what looks like an escape is one. Spelled, the escape becomes the
    text that it is written with.
    """
    if _NEVER_IN_UTF8 in text:
        return text, repairs
    bare = text.replace(_BACKSLASH_ESCAPE, 2 * _NEVER_IN_UTF8)
    without_nul = bare.replace(_NUL_ESCAPE, _spelled(_NUL_ESCAPE) if spelled else _REPLACEMENT_ESCAPE)
    clean, lone_count = _LONE_SURROGATE.subn(
        lambda found: _spelled(found[0]) if spelled else _REPLACEMENT_ESCAPE, without_nul
    )
    found = (*[Repair.NUL] * (without_nul != bare), *[Repair.LONE_SURROGATE] * (lone_count > 0))
    return clean.replace(2 * _NEVER_IN_UTF8, _BACKSLASH_ESCAPE), tuple(dict.fromkeys((*repairs, *found)))


def _spelled(escape: bytes) -> bytes:
    """The escape with its backslash escaped, as it is put aside."""
    return 2 * _NEVER_IN_UTF8 + escape[1:]


def _unusable(text: bytes, error: orjson.JSONDecodeError) -> UnusablePayload:
    try:
        document = text.decode()
    except UnicodeDecodeError as fault:
        return UnusablePayload(RejectReason.INVALID_UTF8, f"not UTF-8 at byte {fault.start}")
    if _is_non_finite(document, error.pos):
        return UnusablePayload(RejectReason.NON_FINITE_NUMBER, f"no finite double at character {error.pos}")
    return UnusablePayload(RejectReason.INVALID_JSON, f"not JSON at character {error.pos}")


def _is_non_finite(document: str, position: int) -> bool:
    """Whether the parser stopped at NaN, Infinity or a number beyond a double. It may stop behind a minus sign."""
    start = position - (document[position - 1 : position] == "-")
    if _NON_FINITE_WORD.match(document, start):
        return True
    number = _NUMBER.match(document, start)
    return number is not None and math.isinf(float(number.group()))
