"""Takes wrappers off: CloudEvents, Kafka Connect's schema and payload, JSON in a JSON string. They may be nested."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pydantic import JsonValue

from schemas.errors import NoValue, UnusablePayload
from schemas.framing import parse_framed
from schemas.headers import Headers, header_texts
from schemas.payload import Parsed, parse_json
from schemas.reject_reason import RejectReason
from schemas.repair import Repair

JsonObject: TypeAlias = dict[str, JsonValue]

MAX_WRAPPERS = 4

_EVENT_HEADER_PREFIX = "ce_"
_EVENT_DATA = ("data", "data_base64")
_CONNECT_FIELDS = {"schema", "payload"}


@dataclass(frozen=True, slots=True)
class Opened:
    """The object inside all wrappers, the attributes of the CloudEvents around it, and what was repaired."""

    body: JsonObject
    event: JsonObject = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class _Layer:
    """What is left to open, and what was learned from the wrappers outside it."""

    node: JsonValue
    event: JsonObject
    repairs: tuple[Repair, ...]
    spelled: bool


def open_envelope(value: bytes, headers: Headers, *, spelled: bool = False) -> Opened:
    """Parse the value and unwrap it down to the object that describes the exchange; ``spelled`` as in ``parse_json``.

    Raises NoValue, and UnusablePayload: as ``parse_framed`` does; null_value, empty_value or not_an_object for what a
    wrapper holds; too_deep for more than MAX_WRAPPERS wrappers; wrong_shape for base64 that is none.
    """
    parsed = parse_framed(value, spelled=spelled)
    layer = _Layer(parsed.value, _event_of_headers(headers, spelled=spelled), parsed.repairs, spelled)
    was_string = False
    for _ in range(MAX_WRAPPERS + 1):
        inner = _unwrap(layer, may_be_string=not was_string)
        if inner is None:
            return Opened(_body(layer.node), layer.event, layer.repairs)
        was_string = was_string or isinstance(layer.node, str)
        layer = inner
    raise UnusablePayload(RejectReason.TOO_DEEP, f"more than {MAX_WRAPPERS} wrappers")


def open_all(value: bytes, headers: Headers, *, spelled: bool = False) -> tuple[Opened, ...]:
    """Parse the value and give what its wrappers hold, in order. Raises as ``open_envelope`` does."""
    return (open_envelope(value, headers, spelled=spelled),)


def _unwrap(layer: _Layer, *, may_be_string: bool) -> _Layer | None:
    """Return what the outermost wrapper holds, or None if there is no wrapper left."""
    node = layer.node
    if isinstance(node, str) and may_be_string and node.lstrip("\ufeff\t\n\r ").startswith("{"):
        return _parsed(layer, parse_json(node.encode(), spelled=layer.spelled))
    if not isinstance(node, dict):
        return None
    if "specversion" in node and any(name in node for name in _EVENT_DATA):
        return _open_event(layer, node)
    if node.keys() == _CONNECT_FIELDS:
        return replace(layer, node=node["payload"])
    return None


def _open_event(layer: _Layer, event: JsonObject) -> _Layer:
    attributes = {name: value for name, value in event.items() if name not in _EVENT_DATA}
    layer = replace(layer, event={**layer.event, **attributes})
    if event.get("data") is not None:
        return replace(layer, node=event["data"])
    if "data_base64" not in event:
        raise UnusablePayload(RejectReason.NULL_VALUE, "the event has no data")
    return _parsed(layer, parse_framed(_decode_base64(event["data_base64"]), spelled=layer.spelled))


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
