"""Events of change data capture that hold an exchange, by the tools that write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from schemas.decoding import Decoded, Rejected, Result, decode_payload
from schemas.reject_reason import RejectReason

NOW = datetime(2026, 11, 30, tzinfo=UTC)
MADE_AT = datetime(2026, 11, 29, 9, 15, tzinfo=UTC)
MS = int(MADE_AT.timestamp()) * 1000
ROW: dict[str, JsonValue] = {"id": 7, "question": "refund?", "contexts": ["Within 30 days."], "answer": "30 days."}
# As a relational database has it: an array in a column of JSON, which is a text in the event.
TABLE_ROW: dict[str, JsonValue] = {
    "id": 7,
    "question": "refund?",
    "passages": json.dumps([{"id": "kb-1", "text": "Within 30 days.", "score": 0.5}]),
    "metadata": json.dumps({"user": "u1"}),
    "answer": "[30] days.",
}
SOURCE: dict[str, JsonValue] = {"connector": "postgresql", "db": "chat", "table": "log", "ts_ms": MS}
DEBEZIUM: dict[str, JsonValue] = {"before": None, "after": ROW, "source": SOURCE, "op": "c", "ts_ms": MS + 5000}
MAXWELL: dict[str, JsonValue] = {"database": "chat", "table": "log", "ts": MS // 1000, "data": ROW}
CANAL: dict[str, JsonValue] = {"database": "chat", "table": "log", "data": [ROW], "isDdl": False, "es": MS, "ts": 1}
DMS: dict[str, JsonValue] = {
    "timestamp": "2026-11-29T09:15:00Z",
    "record-type": "data",
    "schema-name": "chat",
    "table-name": "log",
}
QLIK: dict[str, JsonValue] = {"operation": "INSERT", "changeSequence": "1", "timestamp": "2026-11-29T09:15:00.000Z"}
EVENT: dict[str, JsonValue] = {"specversion": "1.0", "id": "1", "source": "/debezium", "type": "change"}
DOCUMENT = '{"_id": {"$oid": "65a1"}, "question": "refund?", "contexts": ["Within 30 days."], "answer": "30 days."}'

CHANGES: dict[str, dict[str, JsonValue]] = {
    "debezium, created": DEBEZIUM,
    "debezium, changed": {**DEBEZIUM, "before": {**ROW, "answer": "?"}, "op": "u"},
    "debezium, read": {**DEBEZIUM, "op": "r"},
    "debezium, before left out": {"after": ROW, "source": SOURCE, "op": "c"},
    "debezium with its schema": {"schema": {"type": "struct", "fields": []}, "payload": DEBEZIUM},
    "debezium in an event": {**EVENT, "iodebeziumop": "c", "data": {"schema": {}, "payload": DEBEZIUM}},
    "debezium, its time alone": {**DEBEZIUM, "source": {"connector": "x"}, "ts_ms": MS},
    "debezium, flattened": {**ROW, "__deleted": "false", "__op": "c", "__source_ts_ms": MS, "__ts_ms": MS + 1},
    "debezium, flattened, a boolean": {**ROW, "__deleted": False, "__ts_ms": MS},
    "maxwell": {**MAXWELL, "type": "insert"},
    "maxwell, loaded": {**MAXWELL, "type": "bootstrap-insert"},
    "canal": {**CANAL, "type": "INSERT"},
    "dms": {"data": ROW, "metadata": {**DMS, "operation": "load"}},
    "goldengate": {"table": "A.B", "op_type": "I", "op_ts": "2026-11-29 09:15:00.000000", "pos": "0", "after": ROW},
    "mongodb": {
        "operationType": "insert",
        "ns": {"db": "chat", "coll": "log"},
        "fullDocument": {**ROW, "id": {"$numberLong": "7"}},
        "wallTime": {"$date": "2026-11-29T09:15:00Z"},
    },
    "wal2json": {
        "action": "I",
        "schema": "public",
        "table": "log",
        "timestamp": "2026-11-29 09:15:00+00",
        "columns": [{"name": name, "type": "t", "value": value} for name, value in ROW.items()],
    },
    "cockroachdb": {"after": ROW, "key": [7], "updated": f"{MS}000000.0000000001"},
    "datastream": {
        "source_metadata": {"table": "log", "is_deleted": False, "change_type": "INSERT"},
        "source_timestamp": "2026-11-29T09:15:00Z",
        "payload": ROW,
    },
    "qlik": {"message": {"data": ROW, "headers": QLIK}},
    "qlik without its envelope": {"data": ROW, "headers": QLIK},
    "dynamodb": {
        "eventName": "MODIFY",
        "dynamodb": {
            "ApproximateCreationDateTime": MS,
            "NewImage": {
                "id": {"N": "7"},
                "question": {"S": "refund?"},
                "contexts": {"L": [{"S": "Within 30 days."}]},
                "answer": {"S": "30 days."},
                "error": {"NULL": True},
                "user": {"M": {"name": {"S": "u1"}}},
            },
        },
    },
}


def read(row: JsonValue, headers: tuple[tuple[str, bytes | None], ...] = ()) -> tuple[Result, ...]:
    value = json.dumps(row).encode()
    return decode_payload(value, headers, max_bytes=100_000, default_app="default", received_at=NOW).results


@pytest.mark.parametrize("name", CHANGES)
def test_the_row_of_a_change_is_read_with_its_time(name: str) -> None:
    (found,) = read(CHANGES[name])
    assert isinstance(found, Decoded), found
    exchange = found.interaction
    assert (exchange.interaction_id, exchange.question, exchange.answer) == ("7", "refund?", "30 days.")
    assert [passage.text for passage in exchange.passages] == ["Within 30 days."]
    assert exchange.occurred_at == MADE_AT
    assert not any(key.startswith("__") for key in exchange.metadata)


def test_a_row_with_a_time_of_its_own_keeps_it() -> None:
    (found,) = read({**DEBEZIUM, "after": {**ROW, "created_at": 1_764_000_000_000_000}})
    assert isinstance(found, Decoded)
    assert found.interaction.occurred_at == datetime(2025, 11, 24, 16, tzinfo=UTC)


@pytest.mark.parametrize("event", [{**DEBEZIUM, "after": TABLE_ROW}, {**TABLE_ROW, "__deleted": "false"}])
def test_columns_of_json_are_read_and_columns_of_text_stay_texts(event: dict[str, JsonValue]) -> None:
    (found,) = read(event)
    assert isinstance(found, Decoded)
    exchange = found.interaction
    assert [(one.id, one.text, one.score) for one in exchange.passages] == [("kb-1", "Within 30 days.", 0.5)]
    assert exchange.metadata == {"user": "u1"}
    assert exchange.answer == "[30] days."


def test_a_text_that_only_looks_like_json_stays_as_it_is() -> None:
    (found,) = read({**DEBEZIUM, "after": {**ROW, "contexts": "[1] Within 30 days.", "answer": '["30 days."]'}})
    assert isinstance(found, Decoded)
    assert found.interaction.passages[0].text == "[1] Within 30 days."
    assert found.interaction.answer == '["30 days."]'


def test_a_row_that_no_tool_wrote_keeps_its_texts() -> None:
    (found,) = read({**ROW, "note": "[1]", "_op": "c", "__init": 5})
    assert isinstance(found, Decoded)
    assert found.interaction.metadata == {"note": "[1]", "_op": "c", "__init": 5}


def test_documents_of_mongodb_that_debezium_writes_as_text_are_read() -> None:
    (found,) = read({"before": None, "after": DOCUMENT, "source": SOURCE, "op": "c"})
    assert isinstance(found, Decoded)
    assert found.interaction.answer == "30 days."
    assert found.interaction.interaction_id == "65a1"
    (broken,) = read({"before": None, "after": DOCUMENT[:-1], "source": SOURCE, "op": "c"})
    assert isinstance(broken, Rejected)
    assert broken.reason is RejectReason.INVALID_JSON


def test_a_statement_of_several_rows_is_as_many_exchanges() -> None:
    found = read({**CANAL, "type": "INSERT", "data": [ROW, 5, {**ROW, "id": 8}]})
    assert [isinstance(one, Decoded) for one in found] == [True, False, True]


@pytest.mark.parametrize("unavailable", ["__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="])
def test_what_the_log_of_the_database_left_out_is_taken_from_before_or_refused(unavailable: str) -> None:
    changed = {**DEBEZIUM, "op": "u", "after": {**ROW, "answer": unavailable}}
    (refused,) = read(changed)
    assert isinstance(refused, Rejected)
    assert refused.reason is RejectReason.WRONG_SHAPE
    assert "REPLICA IDENTITY FULL" in refused.detail
    (flattened,) = read({**ROW, "answer": unavailable, "__op": "u"})
    assert flattened == refused
    (found,) = read({**changed, "before": ROW})
    assert isinstance(found, Decoded)
    assert found.interaction.answer == "30 days."


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"eventName": "INSERT", "dynamodb": {"Keys": {"id": {"N": "7"}}}}, "dynamodb.NewImage"),
        ({"operationType": "update", "ns": {}, "updateDescription": {"updatedFields": ROW}}, "fullDocument"),
    ],
)
def test_a_change_that_does_not_tell_the_row_says_what_is_missing(event: dict[str, JsonValue], field: str) -> None:
    assert read(event) == (Rejected(RejectReason.WRONG_SHAPE, f"{field}: missing"),)
