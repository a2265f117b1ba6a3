"""Which events say that a row is gone, by the tools that write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from schemas.decoding import Decoded, Rejected, Skipped, decode_payload
from schemas.label_reading import read_label_payload
from schemas.skip_reason import SkipReason

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ROW: dict[str, JsonValue] = {"id": 7, "question": "refund?", "contexts": ["Within 30 days."], "answer": "30 days."}
SOURCE: dict[str, JsonValue] = {"connector": "postgresql", "db": "chat", "table": "log"}
GONE: dict[str, JsonValue] = {"before": ROW, "after": None, "source": SOURCE, "op": "d", "ts_ms": 1}
MAXWELL: dict[str, JsonValue] = {"database": "chat", "table": "log", "ts": 1, "data": ROW}
CANAL: dict[str, JsonValue] = {"database": "chat", "table": "log", "data": [ROW], "isDdl": False}
DMS: dict[str, JsonValue] = {"timestamp": "t", "record-type": "data", "schema-name": "chat", "table-name": "log"}
EVENT: dict[str, JsonValue] = {"specversion": "1.0", "id": "1", "source": "/debezium", "type": "change"}

DELETIONS: dict[str, dict[str, JsonValue]] = {
    "debezium": GONE,
    "debezium without what was there": {**GONE, "before": None},
    "debezium, after left out": {"before": ROW, "source": SOURCE, "op": "d"},
    "debezium with its schema": {"schema": {"type": "struct", "fields": []}, "payload": GONE},
    "debezium, table emptied": {"source": SOURCE, "op": "t", "ts_ms": 1},
    "debezium in an event": {**EVENT, "iodebeziumop": "d", "data": {"before": ROW, "after": None}},
    "debezium in an event, with its schema": {**EVENT, "iodebeziumop": "d", "data": {"schema": {}, "payload": ROW}},
    "debezium, flattened": {**ROW, "__deleted": "true"},
    "debezium, flattened, a boolean": {**ROW, "__deleted": True},
    "debezium, flattened, its operation": {**ROW, "__op": "d"},
    "maxwell": {**MAXWELL, "type": "delete"},
    "canal": {**CANAL, "type": "DELETE"},
    "canal, table emptied": {**CANAL, "data": None, "isDdl": True, "type": "TRUNCATE"},
    "dms": {"data": ROW, "metadata": {**DMS, "operation": "delete"}},
    "goldengate": {"table": "CHAT.LOG", "op_type": "D", "op_ts": "t", "pos": "0", "before": ROW},
    "mongodb": {"operationType": "delete", "ns": {"db": "chat", "coll": "log"}, "documentKey": {"_id": 7}},
    "wal2json": {"action": "D", "schema": "public", "table": "log", "identity": [{"name": "id", "value": 7}]},
    "cockroachdb": {"after": None, "key": [7], "updated": "1.0"},
    "datastream": {"source_metadata": {"table": "log", "is_deleted": True}, "payload": ROW},
    "qlik": {"message": {"data": ROW, "headers": {"operation": "DELETE", "changeSequence": "1"}}},
    "dynamodb": {"eventName": "REMOVE", "dynamodb": {"Keys": {"id": {"N": "7"}}}},
    "supabase": {"type": "DELETE", "schema": "public", "table": "log", "record": None, "old_record": ROW},
}
OTHERS: dict[str, dict[str, JsonValue]] = {
    "a row": ROW,
    "words that a row may have": {**ROW, "op": "d", "source": "faq", "type": "delete", "action": "D", "op_type": "D"},
    "a row that was flattened": {**ROW, "__deleted": "false", "__op": "c"},
    "a row with metadata": {**ROW, "metadata": {"operation": "delete"}},
    "debezium, created": {"before": None, "after": ROW, "source": SOURCE, "op": "c"},
    "debezium, changed": {"before": ROW, "after": ROW, "source": SOURCE, "op": "u"},
    "maxwell, inserted": {**MAXWELL, "type": "insert"},
    "canal, inserted": {**CANAL, "type": "INSERT"},
    "dms, loaded": {"data": ROW, "metadata": {**DMS, "operation": "load"}},
    "dynamodb, inserted": {"eventName": "INSERT", "dynamodb": {"NewImage": {}}},
}


def read(row: JsonValue, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Decoded | Rejected | Skipped:
    value = json.dumps(row).encode()
    reading = decode_payload(value, headers, max_bytes=100_000, default_app="default", received_at=NOW)
    (result,) = reading.results
    return result


@pytest.mark.parametrize("name", DELETIONS)
def test_a_deletion_is_skipped_and_is_no_dead_letter(name: str) -> None:
    assert read(DELETIONS[name]) == Skipped(SkipReason.DELETION)
    framed = b"\x00\x00\x00\x00\x01" + json.dumps(DELETIONS[name]).encode()
    labels = read_label_payload(framed, (), max_bytes=100_000, received_at=NOW)
    assert (labels.skip, labels.labels, labels.faults) == (SkipReason.DELETION, (), ())


@pytest.mark.parametrize("header", [("__op", b"d"), ("__deleted", b"true"), ("ce_iodebeziumop", b"d")])
def test_a_deletion_may_be_said_by_a_header(header: tuple[str, bytes]) -> None:
    assert read(ROW, (header,)) == Skipped(SkipReason.DELETION)
    assert isinstance(read(ROW, ((header[0], b"c"),)), Decoded)


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_taken_for_one(name: str) -> None:
    assert not isinstance(read(OTHERS[name]), Skipped)


@pytest.mark.parametrize("value", [None, b"null", b'{"schema": null, "payload": null}'])
def test_a_label_that_was_compacted_away_is_skipped_if_it_has_a_key(value: bytes | None) -> None:
    reading = read_label_payload(value, (), max_bytes=100, received_at=NOW, has_key=True)
    assert (reading.skip, reading.faults) == (SkipReason.TOMBSTONE, ())
    (fault,) = read_label_payload(value, (), max_bytes=100, received_at=NOW).faults
    assert fault.reason == "null_value"
