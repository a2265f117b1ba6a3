"""Events of change data capture that hold a row as it was inserted, read or updated: the row and its time.

Only marks that a tool alone writes are believed. What says that rows are gone is in ``schemas.deletion``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.errors import UnusablePayload
from schemas.payload import JsonObject, parse_json
from schemas.reject_reason import RejectReason

# What a changefeed of CockroachDB may have beside the row.
CHANGEFEED = {"after", "before", "key", "topic", "updated", "mvcc_timestamp"}
ABSENT = object()

# Debezium's operations on a row that is there: create, update, read for a snapshot.
_DEBEZIUM = ("c", "u", "r")
# What ExtractNewRecordState may add to a row of its own accord, or by add.fields.
_FLATTENED = {"__deleted", "__op", "__table", "__ts_ms", "__source_ts_ms", "__lsn", "__db"}
_FLATTENED_PREFIX = "__"
# Stands for a value that lies outside the row and did not change, so that the log of the database lacks it.
_UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_VALUES = (_UNAVAILABLE, base64.b64encode(_UNAVAILABLE.encode()).decode())


@dataclass(frozen=True, slots=True)
class Change:
    """What a change made of a row, or of several (an array); when, in any form that ``parse_timestamp`` reads."""

    rows: JsonValue
    changed_at: JsonValue = None


@dataclass(frozen=True, slots=True)
class _Form:
    """How a tool writes it: one of ``words`` at ``mark``, ``others`` beside it, and where the row and its time are."""

    mark: str
    words: tuple[JsonValue, ...]
    others: tuple[str, ...]
    row: str
    times: tuple[str, ...] = ()
    plain: Callable[[JsonValue], JsonValue] | None = None


def at(row: JsonValue, path: str) -> object:
    """The value at names with dots between, or ``ABSENT``."""
    found: object = row
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return ABSENT
        found = found[name]
    return found


def change_of(node: JsonObject, *, spelled: bool = False) -> Change | None:
    """Return what the event holds, or None if it is none, or says that something was deleted.

    ``spelled`` as in ``parse_json``, for documents that are text in the event.
    Raises UnusablePayload (wrong_shape) for an event that lacks a value which did not change, and as ``parse_json``.
    """
    change = _debezium(node) or _changefeed(node) or _flattened(node) or _by_form(node)
    if change is None:
        return None
    rows = change.rows
    if isinstance(rows, str):
        rows = _document(parse_json(rows.encode(errors="replace"), spelled=spelled).value)
    _require_available(rows)
    return Change(rows, change.changed_at)


def _debezium(node: JsonObject) -> Change | None:
    has_envelope = "before" in node or isinstance(node.get("source"), dict)
    after = node.get("after")
    if node.get("op") not in _DEBEZIUM or not has_envelope or not isinstance(after, dict | str):
        return None
    before = node.get("before")
    if isinstance(after, dict) and isinstance(before, dict):
        after = {name: before.get(name, one) if _is_unavailable(one) else one for name, one in after.items()}
    source_time = at(node, "source.ts_ms")
    return Change(after, source_time if isinstance(source_time, int) and source_time else node.get("ts_ms"))


def _changefeed(node: JsonObject) -> Change | None:
    after = node.get("after")
    if not isinstance(after, dict) or not node.keys() <= CHANGEFEED:
        return None
    # A logical clock: nanoseconds, a full stop, and a count.
    updated = str(node.get("updated") or node.get("mvcc_timestamp") or "")
    return Change(after, updated.partition(".")[0] or None)


def _flattened(node: JsonObject) -> Change | None:
    """A row with what the tool has added to it; what says that it is gone is left to be seen as that."""
    if _FLATTENED.isdisjoint(node) or str(node.get("__deleted")).lower() == "true" or node.get("__op") in ("d", "t"):
        return None
    row: JsonObject = {name: one for name, one in node.items() if not name.startswith(_FLATTENED_PREFIX)}
    return Change(row, node.get("__source_ts_ms") or node.get("__ts_ms"))


def _by_form(node: JsonObject) -> Change | None:
    form = next((form for form in _FORMS if _bears(node, form)), None)
    if form is None:
        return None
    row = at(node, form.row)
    if not isinstance(row, dict | list | str):
        # A stream that was set up to tell the key alone, or only what was changed.
        raise UnusablePayload(RejectReason.WRONG_SHAPE, f"{form.row}: missing")
    times = (at(node, path) for path in form.times)
    time = next((one for one in times if isinstance(one, str | int | float)), None)
    return Change(form.plain(row) if form.plain else row, time)


def _bears(node: JsonObject, form: _Form) -> bool:
    return at(node, form.mark) in form.words and all(at(node, other) is not ABSENT for other in form.others)


def _require_available(rows: JsonValue) -> None:
    for row in rows if isinstance(rows, list) else [rows]:
        if isinstance(row, dict) and any(_is_unavailable(one) for one in row.values()):
            rule = "a value that did not change is left out; set REPLICA IDENTITY FULL on the table"
            raise UnusablePayload(RejectReason.WRONG_SHAPE, f"change: {rule}")


def _is_unavailable(value: JsonValue) -> bool:
    return isinstance(value, str) and value in _UNAVAILABLE_VALUES


def _columns(columns: JsonValue) -> JsonValue:
    """Rows of wal2json: a list of columns, each with its name and value."""
    pairs = columns if isinstance(columns, list) else []
    return {str(one["name"]): one.get("value") for one in pairs if isinstance(one, dict) and "name" in one}


def _document(value: JsonValue) -> JsonValue:
    """A document of MongoDB whose values have their types with them, without these."""
    if isinstance(value, list):
        return [_document(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (name, inner), *_ = value.items()
        if name in _TYPED and isinstance(inner, str | int | float):
            return inner
        if name == "$date" and isinstance(inner, dict):
            return inner.get("$numberLong")
    return {name: _document(one) for name, one in value.items()}


_TYPED = {"$oid", "$date", "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal", "$uuid", "$symbol"}


def _attributes(image: JsonValue) -> JsonValue:
    """An image of DynamoDB, whose every value is an object of its type and itself."""
    return {name: _attribute(one) for name, one in image.items()} if isinstance(image, dict) else image


def _attribute(typed: JsonValue) -> JsonValue:
    if not isinstance(typed, dict) or len(typed) != 1:
        return typed
    (kind, value), *_ = typed.items()
    if kind == "NULL":
        return None
    if kind == "M":
        return _attributes(value)
    if kind == "L" and isinstance(value, list):
        return [_attribute(one) for one in value]
    return value


_FORMS = (
    # Maxwell; Canal and TiCDC write capitals, and the rows of a statement together.
    _Form("type", ("insert", "update", "bootstrap-insert"), ("database", "table"), "data", ("ts",)),
    _Form("type", ("INSERT", "UPDATE"), ("database", "table", "isDdl"), "data", ("es", "ts")),
    # AWS Database Migration Service.
    _Form(
        "metadata.operation", ("load", "insert", "update"), ("metadata.record-type",), "data", ("metadata.timestamp",)
    ),
    # Oracle GoldenGate and what writes as it does.
    _Form("op_type", ("I", "U"), ("table", "op_ts"), "after", ("op_ts",)),
    # Change streams of MongoDB.
    _Form(
        "operationType",
        ("insert", "update", "replace"),
        ("ns",),
        "fullDocument",
        ("wallTime.$date", "wallTime"),
        _document,
    ),
    # wal2json, version 2.
    _Form("action", ("I", "U"), ("schema", "table"), "columns", ("timestamp",), _columns),
    # Google Datastream.
    _Form(
        "source_metadata.change_type",
        ("INSERT", "UPDATE", "UPDATE-INSERT", "READ"),
        ("source_metadata.table",),
        "payload",
        ("source_timestamp",),
    ),
    # Qlik Replicate, with its envelope and without.
    _Form(
        "message.headers.operation",
        ("INSERT", "UPDATE", "REFRESH"),
        ("message.headers.changeSequence",),
        "message.data",
        ("message.headers.timestamp",),
    ),
    _Form(
        "headers.operation",
        ("INSERT", "UPDATE", "REFRESH"),
        ("headers.changeSequence",),
        "data",
        ("headers.timestamp",),
    ),
    # Streams of DynamoDB.
    _Form(
        "eventName",
        ("INSERT", "MODIFY"),
        ("dynamodb",),
        "dynamodb.NewImage",
        ("dynamodb.ApproximateCreationDateTime",),
        _attributes,
    ),
    # Supabase.
    _Form("type", ("INSERT", "UPDATE"), ("table", "schema", "old_record"), "record"),
)
