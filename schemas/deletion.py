"""Events of change data capture that say that a row is gone. Only marks that a tool alone writes are believed."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.headers import Headers, header_texts

# Debezium's operations: delete, and truncate.
_DEBEZIUM = ("d", "t")
# What a changefeed of CockroachDB may have beside the row.
_CHANGEFEED = {"after", "before", "key", "topic", "updated", "mvcc_timestamp"}


@dataclass(frozen=True, slots=True)
class _Mark:
    """How a tool says so: one of ``words`` at ``path``, in an object that has all the ``others``, too."""

    path: tuple[str, ...]
    words: tuple[JsonValue, ...]
    others: tuple[str, ...] = ()


_MARKS = (
    # Debezium, flattened by ExtractNewRecordState.
    _Mark(("__deleted",), ("true", True)),
    _Mark(("__op",), _DEBEZIUM),
    # Maxwell; Canal and TiCDC write capitals.
    _Mark(("type",), ("delete", "DELETE"), ("database", "table", "data")),
    _Mark(("type",), ("TRUNCATE",), ("database", "table", "isDdl")),
    # AWS Database Migration Service.
    _Mark(("metadata", "operation"), ("delete", "truncate-table"), ("metadata.record-type",)),
    # Oracle GoldenGate and what writes as it does.
    _Mark(("op_type",), ("D", "T"), ("table", "op_ts")),
    # Change streams of MongoDB.
    _Mark(("operationType",), ("delete", "drop", "dropDatabase"), ("ns",)),
    # wal2json, version 2.
    _Mark(("action",), ("D", "T"), ("schema", "table")),
    # Google Datastream.
    _Mark(("source_metadata", "is_deleted"), (True,)),
    _Mark(("source_metadata", "change_type"), ("DELETE",)),
    # Qlik Replicate, with its envelope and without.
    _Mark(("message", "headers", "operation"), ("DELETE",), ("message.headers.changeSequence",)),
    _Mark(("headers", "operation"), ("DELETE",), ("headers.changeSequence",)),
    # Streams of DynamoDB.
    _Mark(("eventName",), ("REMOVE",), ("dynamodb",)),
    # Supabase, and Estuary Flow.
    _Mark(("type",), ("DELETE",), ("table", "schema", "old_record")),
    _Mark(("_meta", "op"), ("d",)),
)


def is_deletion(row: JsonObject, event: JsonObject, headers: Headers) -> bool:
    """Whether a row, taken out of its wrappers, says that a row was deleted or that a table was emptied.

    ``event`` has the attributes of the CloudEvents around it.
    """
    texts = header_texts(headers)
    return (
        _is_debezium(row)
        or event.get("iodebeziumop") in _DEBEZIUM
        or texts.get("__op") in _DEBEZIUM
        or texts.get("__deleted") == "true"
        or ("after" in row and row["after"] is None and row.keys() <= _CHANGEFEED)
        or any(_bears(row, mark) for mark in _MARKS)
    )


def _is_debezium(row: JsonObject) -> bool:
    has_envelope = "before" in row or "after" in row or isinstance(row.get("source"), dict)
    return has_envelope and row.get("op") in _DEBEZIUM and row.get("after") is None


def _bears(row: JsonObject, mark: _Mark) -> bool:
    word = _at(row, mark.path)
    return word in mark.words and all(_at(row, tuple(other.split("."))) is not _ABSENT for other in mark.others)


def _at(row: JsonValue, path: tuple[str, ...]) -> object:
    """The value at a path, or ``_ABSENT``."""
    found: object = row
    for name in path:
        if not isinstance(found, dict) or name not in found:
            return _ABSENT
        found = found[name]
    return found


_ABSENT = object()
