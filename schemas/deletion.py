"""Events of change data capture that say that a row is gone. Only marks that a tool alone writes are believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.change import ABSENT, CHANGEFEED, at
from schemas.payload import JsonObject

# Debezium's operations: delete, and truncate.
_DEBEZIUM = ("d", "t")


@dataclass(frozen=True, slots=True)
class _Mark:
    """How a tool says so: one of ``words`` at ``path``, in an object that has all the ``others``, too."""

    path: str
    words: tuple[JsonValue, ...]
    others: tuple[str, ...] = ()


_MARKS = (
    # Debezium, flattened by ExtractNewRecordState.
    _Mark("__deleted", ("true", True)),
    _Mark("__op", _DEBEZIUM),
    # Maxwell; Canal and TiCDC write capitals.
    _Mark("type", ("delete", "DELETE"), ("database", "table", "data")),
    _Mark("type", ("TRUNCATE",), ("database", "table", "isDdl")),
    # AWS Database Migration Service.
    _Mark("metadata.operation", ("delete", "truncate-table"), ("metadata.record-type",)),
    # Oracle GoldenGate and what writes as it does.
    _Mark("op_type", ("D", "T"), ("table", "op_ts")),
    # Change streams of MongoDB.
    _Mark("operationType", ("delete", "drop", "dropDatabase"), ("ns",)),
    # wal2json, version 2.
    _Mark("action", ("D", "T"), ("schema", "table")),
    # Google Datastream.
    _Mark("source_metadata.is_deleted", (True,)),
    _Mark("source_metadata.change_type", ("DELETE",)),
    # Qlik Replicate, with its envelope and without.
    _Mark("message.headers.operation", ("DELETE",), ("message.headers.changeSequence",)),
    _Mark("headers.operation", ("DELETE",), ("headers.changeSequence",)),
    # Streams of DynamoDB.
    _Mark("eventName", ("REMOVE",), ("dynamodb",)),
    # Supabase, and Estuary Flow.
    _Mark("type", ("DELETE",), ("table", "schema", "old_record")),
    _Mark("_meta.op", ("d",)),
)


def is_deletion(row: JsonObject, event: JsonObject, texts: Mapping[str, str]) -> bool:
    """Whether a row, taken out of its wrappers, says that a row was deleted or that a table was emptied.

    ``event`` has the attributes of the CloudEvents around it, ``texts`` the headers of the message.
    """
    return (
        _is_debezium(row)
        or event.get("iodebeziumop") in _DEBEZIUM
        or texts.get("__op") in _DEBEZIUM
        or texts.get("__deleted") == "true"
        or ("after" in row and row["after"] is None and row.keys() <= CHANGEFEED)
        or any(_bears(row, mark) for mark in _MARKS)
    )


def _is_debezium(row: JsonObject) -> bool:
    has_envelope = "before" in row or "after" in row or isinstance(row.get("source"), dict)
    return has_envelope and row.get("op") in _DEBEZIUM and row.get("after") is None


def _bears(row: JsonObject, mark: _Mark) -> bool:
    return at(row, mark.path) in mark.words and all(at(row, other) is not ABSENT for other in mark.others)
