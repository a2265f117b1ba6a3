"""Takes wrappers off: CloudEvents, Kafka Connect's schema and payload, changes of rows, JSON in a JSON string, arrays.

They may be nested.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias, TypeVar

import orjson
from pydantic import JsonValue

from schemas.change import change_of
from schemas.encodings.compression import decompressed
from schemas.encodings.schema import FILE_MAGIC, NO_SCHEMAS, SchemaKind, Schemas
from schemas.errors import NoValue, UnusablePayload
from schemas.framing import parse_framed
from schemas.headers import Headers, header_texts
from schemas.lines import MAX_ROWS, json_lines, too_many_rows
from schemas.payload import JsonObject, Parsed, parse_json
from schemas.reject_reason import RejectReason
from schemas.repair import Repair
from schemas.text import REPLACEMENT

__all__ = ["MAX_WRAPPERS", "Found", "JsonObject", "Opened", "open_all"]

MAX_WRAPPERS = 4

_EVENT_HEADER_PREFIX = "ce_"
_EVENT_DATA = ("data", "data_base64")
_CONNECT_FIELDS = {"schema", "payload"}
_HOLDS_JSON = re.compile("[\ufeff\t\n\r ]*[{[]")

_PartT = TypeVar("_PartT")


@dataclass(frozen=True, slots=True)
class Opened:
    """The object inside all wrappers, the attributes of the CloudEvents around it, and what was repaired.

    ``row`` is its number, from 1, in a message that holds several, and ``event_row`` in an event that does.
    ``is_change`` says that it is a row of a database, or a document, as change data capture tells of it; it was made so
    at ``changed_at``, in any form that ``parse_timestamp`` reads.
    """

    body: JsonObject
    event: JsonObject = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    row: int | None = None
    event_row: int | None = None
    is_change: bool = False
    changed_at: JsonValue = None


Found: TypeAlias = Opened | UnusablePayload
"""One of several bodies, or why it is none: the detail begins with the number of its row."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """What is left to open, and what was learned from the wrappers outside it."""

    node: JsonValue
    event: JsonObject
    repairs: tuple[Repair, ...]
    spelled: bool
    max_bytes: int
    schemas: Schemas
    only: SchemaKind | None
    wrappers_left: int = MAX_WRAPPERS
    may_be_string: bool = True
    may_be_array: bool = True
    is_one_of_several: bool = False
    event_row: int | None = None
    is_change: bool = False
    changed_at: JsonValue = None


def open_all(
    value: bytes,
    headers: Headers,
    *,
    max_bytes: int,
    schemas: Schemas = NO_SCHEMAS,
    only: SchemaKind | None = None,
    spelled: bool = False,
) -> tuple[Found, ...]:
    """Parse the value and give what its wrappers hold, in order, at least one; ``spelled`` as in ``parse_json``.

    Of several bodies (an array, JSON lines, an Avro file) each one stands for itself. ``max_bytes`` bounds what is
    decompressed.
    ``schemas`` and ``only`` as in ``parse_framed``.
    Raises NoValue, and UnusablePayload: as ``decompressed`` and ``parse_framed`` do; null_value, empty_value or
    not_an_object for what a wrapper holds; too_deep for more than MAX_WRAPPERS wrappers; wrong_shape for base64 that
    is none and for a change that lacks the row; too_many_rows.
    """
    headers = tuple(headers)
    text = decompressed(value, headers, max_bytes=max_bytes)
    event = _event_of_headers(headers, spelled=spelled)
    outermost = _Layer(None, event, (), spelled, max_bytes, schemas, only)
    lines = _lines(text, max_bytes, only)
    found = _of_value(outermost, text, headers) if lines is None else _several(outermost, lines, _of_line)
    rows = tuple(islice(found, MAX_ROWS + 1))
    if len(rows) > MAX_ROWS:
        raise too_many_rows()
    return tuple(_numbered(one, number) for number, one in enumerate(rows, 1))


def _lines(text: bytes, max_bytes: int, only: SchemaKind | None) -> Sequence[bytes] | None:
    """The JSON texts that a value holds, if it is of a form that holds several."""
    if text.startswith(FILE_MAGIC) and only in (None, SchemaKind.AVRO):
        # Its packages belong to an extra.
        from schemas.encodings.avro import avro_file_as_json

        return avro_file_as_json(text, max_bytes=max_bytes)
    return json_lines(text) if only is None else None


def _of_value(layer: _Layer, text: bytes, headers: Headers = ()) -> Iterator[Found]:
    return _opened(_framed(layer, text, headers))


def _of_line(layer: _Layer, line: bytes) -> Iterator[Found]:
    return _opened(_parsed(layer, parse_json(line, spelled=layer.spelled)))


def _of_element(layer: _Layer, node: JsonValue) -> Iterator[Found]:
    repairs = layer.repairs
    if repairs and REPLACEMENT.encode() not in orjson.dumps(node):
        # What was repaired lies in another element.
        repairs = tuple(repair for repair in repairs if repair is Repair.BOM)
    return _opened(replace(layer, node=node, repairs=repairs))


def _opened(layer: _Layer) -> Iterator[Found]:
    """What a layer holds: one body, or several."""
    while (inner := _unwrap(layer)) is not None:
        if not layer.wrappers_left:
            raise UnusablePayload(RejectReason.TOO_DEEP, f"more than {MAX_WRAPPERS} wrappers")
        layer = replace(inner, wrappers_left=layer.wrappers_left - 1)
    if not isinstance(layer.node, list) or not layer.may_be_array:
        yield Opened(
            body=_body(layer.node),
            event=layer.event,
            repairs=layer.repairs,
            row=0 if layer.is_one_of_several else None,
            event_row=layer.event_row,
            is_change=layer.is_change,
            changed_at=layer.changed_at,
        )
        return
    yield from _several(layer, layer.node, _of_element)


def _several(
    layer: _Layer, parts: Sequence[_PartT], read: Callable[[_Layer, _PartT], Iterator[Found]]
) -> Iterator[Found]:
    """What each part holds; what is wrong with one is no fault of the others."""
    if not parts:
        raise UnusablePayload(RejectReason.EMPTY_VALUE, "an array or a file without rows")
    if layer.event and len(parts) * len(orjson.dumps(layer.event)) > layer.max_bytes:
        raise UnusablePayload(
            RejectReason.TOO_LARGE, f"attributes of an event with {len(parts)} rows, the limit is {layer.max_bytes}"
        )
    for number, part in enumerate(parts, 1):
        event_row = number if layer.event else layer.event_row
        inner = replace(layer, is_one_of_several=True, may_be_array=False, event_row=event_row)
        try:
            yield from read(inner, part)
        except UnusablePayload as unusable:
            yield unusable


def _numbered(found: Found, number: int) -> Found:
    if isinstance(found, UnusablePayload):
        return UnusablePayload(found.reason, f"row {number}: {found.detail}")
    return found if found.row is None else replace(found, row=number)


def _unwrap(layer: _Layer) -> _Layer | None:
    """Return what the outermost wrapper holds, or None if there is no wrapper left."""
    node = layer.node
    if isinstance(node, str) and layer.may_be_string and _HOLDS_JSON.match(node):
        inner = _parsed(layer, parse_json(node.encode(), spelled=layer.spelled))
        return replace(inner, may_be_string=False, may_be_array=True)
    if not isinstance(node, dict):
        return None
    if "specversion" in node and any(name in node for name in _EVENT_DATA):
        return _open_event(layer, node)
    if node.keys() == _CONNECT_FIELDS:
        return replace(layer, node=node["payload"], may_be_array=True)
    change = change_of(node, spelled=layer.spelled)
    if change is None:
        return None
    return replace(layer, node=change.rows, may_be_array=True, is_change=True, changed_at=change.changed_at)


def _open_event(layer: _Layer, event: JsonObject) -> _Layer:
    attributes = {name: value for name, value in event.items() if name not in _EVENT_DATA}
    layer = replace(layer, event={**layer.event, **attributes}, event_row=None, may_be_array=True)
    data = event.get("data")
    if data is not None and event.get("datacontentencoding") != "base64":
        return replace(layer, node=data)
    encoded = event.get("data_base64") if data is None else data
    if encoded is None and "data_base64" not in event:
        raise UnusablePayload(RejectReason.NULL_VALUE, "the event has no data")
    return _framed(layer, _decode_base64(encoded))


def _framed(layer: _Layer, text: bytes, headers: Headers = ()) -> _Layer:
    parsed = parse_framed(
        text, headers, max_bytes=layer.max_bytes, schemas=layer.schemas, only=layer.only, spelled=layer.spelled
    )
    return _parsed(layer, parsed)


def _decode_base64(data: JsonValue) -> bytes:
    try:
        return base64.b64decode(data if isinstance(data, str) else "*", validate=True)
    except (binascii.Error, ValueError):
        raise UnusablePayload(RejectReason.WRONG_SHAPE, "data_base64: must be base64") from None


def _parsed(layer: _Layer, parsed: Parsed) -> _Layer:
    return replace(layer, node=parsed.value, repairs=tuple(dict.fromkeys((*layer.repairs, *parsed.repairs))))


def _event_of_headers(headers: Headers, *, spelled: bool) -> JsonObject:
    """The attributes of an event in binary mode, where the value is the event's data alone."""
    return {
        name.removeprefix(_EVENT_HEADER_PREFIX): text
        for name, text in header_texts(headers, spelled=spelled).items()
        if name.startswith(_EVENT_HEADER_PREFIX)
    }


def _body(node: JsonValue) -> JsonObject:
    if isinstance(node, dict):
        return node
    if node is None:
        raise NoValue("the value is null")
    if isinstance(node, str) and not node.strip():
        raise UnusablePayload(RejectReason.EMPTY_VALUE, "the value is a blank string")
    raise UnusablePayload(RejectReason.NOT_AN_OBJECT, f"the value is {_JSON_TYPES[type(node)]}")


_JSON_TYPES = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
