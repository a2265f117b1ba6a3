"""Objects that a logger wrote as Python prints them (``json.dumps(…, default=str)``): documents and messages.

Nothing is evaluated but literals: strings in the one form that Python prints them in, and short metadata.
"""

from __future__ import annotations

import ast
import math
import re
from itertools import islice

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.text import replace_unstorable

# What is longer or deeper is kept as the text that it is: reading it would take far more memory than it has characters.
_MAX_LITERAL_CHARS = 65_536
_MAX_LITERAL_DEPTH = 50
_MAX_FIELDS = 100
_MAX_EXACT_INTEGER = 2**63 - 1

_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
_STRING = rf"(?:'(?:[^'\\\r\n]++|{_ESCAPE})*+'|\"(?:[^\"\\\r\n]++|{_ESCAPE})*+\")"
_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"

_TEXT = re.compile(_STRING)
_FIELD = re.compile(rf"({_NAME})=")
_BARE = re.compile(r"[^\s,()\[\]{}'\"]++")
_CLASS = re.compile(rf"{_NAME}\(")
_SEPARATOR = re.compile(r",? ")
_BRACKETS = re.compile(rf"{_STRING}|[()\[\]{{}}]")
# The tokens of a literal that is no expression: nothing is added, called or concatenated.
_NUMBER = r"-?(?:[0-9]{1,300}(?:\.[0-9]{1,300})?(?:e[+-]?[0-9]{1,3})?)"
_LITERAL = re.compile(rf"(?:{_STRING}(?= *[],:)}}]|$)|{_NUMBER}\b|\b(?:True|False|None)\b|[\[\]{{}}():, ])*+")

_OPENING = ("(", "[", "{")


def printed_object(text: str, *, needs: str) -> JsonObject | None:
    """Read an object as ``str`` or ``repr`` prints it: its fields, or None if it is no whole object of this kind.

    ``needs`` names the field that it must have (``page_content``). A field that is no literal is kept as its text.
    Takes time linear in the text.
    """
    text = text.strip()
    found = _object(text, 0)
    if found is None:
        return None
    fields, end = found
    return fields if end == len(text) and needs in fields else None


def printed_objects(text: str, *, needs: str, limit: int) -> list[JsonValue] | None:
    """Read a list of such objects, as ``str`` prints it; None if it is none, or is empty.

    Of more than ``limit`` the first ``limit + 1`` are read.
    """
    text = text.strip()
    if not text.startswith("["):
        return None
    objects: list[JsonValue] = []
    at = 1
    while (found := _object(text, at)) is not None and needs in found[0]:
        objects.append(found[0])
        at = found[1]
        if len(objects) > limit or (at == len(text) - 1 and text[at] == "]"):
            return objects
        if not text.startswith(", ", at):
            return None
        at += 2
    return None


def printed_list(text: str) -> list[JsonValue] | None:
    """Read a list of strings, numbers and objects as ``str`` prints it; None if it is none."""
    text = text.strip()
    value = _literal(text) if text.startswith("[") and text.endswith("]") else None
    return value if isinstance(value, list) else None


def _object(text: str, start: int) -> tuple[JsonObject, int] | None:
    """The fields of the object that begins at ``start``, and where it ends."""
    named = _CLASS.match(text, start)
    at = named.end() if named else start
    fields: JsonObject = {}
    for _ in range(_MAX_FIELDS):
        name = _FIELD.match(text, at)
        found = _value(text, name.end()) if name else None
        if name is None or found is None:
            return None
        fields[name[1]], at = found
        separator = _SEPARATOR.match(text, at)
        if separator is None or _FIELD.match(text, separator.end()) is None:
            break
        at = separator.end()
    if named is None:
        return fields, at
    return (fields, at + 1) if text.startswith(")", at) else None


def _value(text: str, start: int) -> tuple[JsonValue, int] | None:
    """The value that begins at ``start``, and where it ends; None if it has no end."""
    if (string := _TEXT.match(text, start)) is not None:
        return _string(string[0]), string.end()
    bare = _BARE.match(text, start)
    end = bare.end() if bare else start
    if text[end : end + 1] in _OPENING:
        closed = _closed(text, end)
        if closed is None:
            return None
        end = closed
    if end == start:
        return None
    value = _literal(text[start:end])
    return (value if value is not None or text[start:end] == "None" else text[start:end]), end


def _closed(text: str, start: int) -> int | None:
    """Behind the bracket that closes the one at ``start``; None if it is too far away."""
    depth = 0
    for token in islice(_BRACKETS.finditer(text, start), _MAX_LITERAL_CHARS):
        if token[0] in _OPENING:
            depth += 1
        elif len(token[0]) == 1:
            depth -= 1
        if depth == 0:
            return token.end()
    return None


def _string(literal: str) -> str:
    return replace_unstorable(str(ast.literal_eval(literal)))


def _literal(text: str) -> JsonValue:
    """The value of a literal as JSON has it; None for what is none, or is too large to be looked into."""
    if len(text) > _MAX_LITERAL_CHARS or _LITERAL.fullmatch(text) is None or _depth(text) > _MAX_LITERAL_DEPTH:
        return None
    try:
        return _as_json(ast.literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        return None


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _BRACKETS.finditer(text):
        if len(token[0]) == 1:
            depth += 1 if token[0] in _OPENING else -1
            deepest = max(deepest, depth)
    return deepest


def _as_json(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {replace_unstorable(str(name)): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_as_json(one) for one in value]
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int) and abs(value) <= _MAX_EXACT_INTEGER:
        return value
    if isinstance(value, int | float):
        number = float(value)
        return number if math.isfinite(number) else None
    return None
