"""Avro as JSON: values that fastavro wrote, and bytes that nobody meant as any."""

from __future__ import annotations

import io
import json
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.encodings.avro import avro_as_json, avro_file_as_json
from schemas.encodings.schema import Schema, SchemaKind
from schemas.errors import UnusablePayload
from schemas.lines import MAX_ROWS
from schemas.payload import MAX_DEPTH
from schemas.reject_reason import RejectReason
from tests.bars import bar

MAX_BYTES = 1_000_000


def schema_of(schema: Any, *references: Any) -> Schema:
    others = tuple(Schema(SchemaKind.AVRO, json.dumps(one)) for one in references)
    return Schema(SchemaKind.AVRO, json.dumps(schema), others)


def written(schema: Any, value: Any) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(schema), value)
    return buffer.getvalue()


def round_trip(schema: Any, value: Any) -> Any:
    return json.loads(avro_as_json(written(schema, value), schema_of(schema)))


def record(*fields: tuple[str, Any], name: str = "R") -> Any:
    return {"type": "record", "name": name, "fields": [{"name": one, "type": kind} for one, kind in fields]}


def file_of(schema: Any, values: list[Any], codec: str = "null") -> bytes:
    if codec == "zstandard":
        return _zstandard_file(file_of(schema, values))
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), values, codec=codec)
    return buffer.getvalue()


def _zstandard_file(plain: bytes) -> bytes:
    """A file in the codec that fastavro lacks a library for here, made of one without any."""
    sync = plain[-16:]
    head, *blocks = plain.split(sync)
    written_blocks = b""
    for block in filter(None, blocks):
        stream = io.BytesIO(block)
        count, _ = fastavro.schemaless_reader(stream, "long"), fastavro.schemaless_reader(stream, "long")
        data = zstandard.compress(stream.read())
        written_blocks += written("long", count) + written("bytes", data) + sync
    return head.replace(b"\x14avro.codec\x08null", b"\x14avro.codec\x12zstandard") + sync + written_blocks


def reason_of(schema: Any, value: bytes) -> RejectReason:
    with pytest.raises(UnusablePayload) as raised:
        avro_as_json(value, schema_of(schema))
    return raised.value.reason


NODE = record(("text", "string"), ("next", ["null", "R"]), ("more", {"type": "array", "items": "R"}))
GRADE = {"type": "enum", "name": "Grade", "symbols": ["GOOD", "BAD"]}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("int", -7, -7),
        ("long", -(2**63), -(2**63)),
        ("float", 0.83, 0.83),
        ("float", 3.4028234663852886e38, 3.4028235e38),
        ("double", 0.1, 0.1),
        ("string", "Größe \x00", "Größe \x00"),
        ("bytes", "ü".encode(), "ü"),
        ("bytes", b"\xff\x00", "/wA="),
        ({"type": "map", "values": ["null", "long"]}, {"a": None, "b": 5}, {"a": None, "b": 5}),
        (record(("g", GRADE), ("h", ["null", "Grade"])), {"g": "BAD", "h": "GOOD"}, {"g": "BAD", "h": "GOOD"}),
        (
            NODE,
            {"text": "a", "next": {"text": "b", "next": None, "more": []}, "more": []},
            {"text": "a", "next": {"text": "b", "next": None, "more": []}, "more": []},
        ),
        ({"type": "int", "logicalType": "date"}, date(2026, 11, 30), "2026-11-30"),
        ({"type": "int", "logicalType": "time-millis"}, time(9, 15, 0, 5000), "09:15:00.005000"),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC),
            "1969-12-31T23:59:59.5Z",
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            datetime(2026, 1, 2, 3),  # noqa: DTZ001 - a clock without a zone
            "2026-01-02T03:00:00",
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-0.05"), "-0.05"),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), str(uuid.UUID(int=7))),
        ({"type": "long", "logicalType": "made-up"}, 5, 5),
    ],
)
def test_a_value_is_written_again_as_json(schema: Any, value: Any, expected: object) -> None:
    assert round_trip(schema, value) == expected


def test_times_beyond_the_calendar_stay_numbers() -> None:
    schema = {"type": "long", "logicalType": "timestamp-millis"}
    assert json.loads(avro_as_json(written("long", 2**62), schema_of(schema))) == 2**62


def test_types_of_other_schemas_are_known_by_name() -> None:
    passage = {"type": "record", "name": "rag.Passage", "fields": [{"name": "text", "type": "string"}]}
    whole = record(("passages", {"type": "array", "items": "rag.Passage"}), name="rag.Row")
    inline = record(("passages", {"type": "array", "items": passage}), name="rag.Row")
    value = written(inline, {"passages": [{"text": "a"}]})
    assert json.loads(avro_as_json(value, schema_of(whole, passage))) == {"passages": [{"text": "a"}]}
    with pytest.raises(UnusablePayload) as raised:
        avro_as_json(value, schema_of(whole))
    assert raised.value.reason is RejectReason.UNKNOWN_SCHEMA


@pytest.mark.parametrize(
    "schema", [5, None, [], {}, "nosuch", {"type": "record"}, {"type": "record", "name": "a", "fields": 5}, [["null"]]]
)
def test_a_schema_that_is_none_has_a_name(schema: Any) -> None:
    assert reason_of(schema, b"\x00") in (RejectReason.UNKNOWN_SCHEMA, RejectReason.INVALID_ENCODING)


LONGEST = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ("string", LONGEST, RejectReason.INVALID_ENCODING),
        ("string", b"\x03", RejectReason.INVALID_ENCODING),
        ("string", b"\x04a", RejectReason.INVALID_ENCODING),
        ("string", b"\x02\xff", RejectReason.INVALID_UTF8),
        ("string", b"\x02ab", RejectReason.INVALID_ENCODING),
        ("long", b"\xff" * 11, RejectReason.INVALID_ENCODING),
        ("boolean", b"\x02", RejectReason.INVALID_ENCODING),
        ("double", struct.pack("<d", float("nan")), RejectReason.NON_FINITE_NUMBER),
        (["null", "int"], b"\x04", RejectReason.INVALID_ENCODING),
        (GRADE, b"\x03", RejectReason.INVALID_ENCODING),
        ({"type": "array", "items": "null"}, LONGEST, RejectReason.TOO_LARGE),
        ({"type": "array", "items": record(("a", "null"))}, LONGEST, RejectReason.TOO_LARGE),
        (NODE, b"\x00\x02" * 2_000_000, RejectReason.TOO_DEEP),
        (record(("r", ["null", "R"])), b"\x02" * 4_000_000, RejectReason.TOO_DEEP),
    ],
)
def test_hostile_bytes_have_a_name_and_take_no_more_than_their_length(
    schema: Any, value: bytes, reason: RejectReason
) -> None:
    assert reason_of(schema, value) is reason


def test_a_value_may_be_as_deep_as_json() -> None:
    schema = record(("r", ["null", "R"]))
    assert avro_as_json(b"\x02" * (MAX_DEPTH - 1) + b"\x00", schema_of(schema)).count(b"{") == MAX_DEPTH
    assert reason_of(schema, b"\x02" * MAX_DEPTH + b"\x00") is RejectReason.TOO_DEEP


def test_words_of_the_schema_are_not_multiplied_without_end() -> None:
    schema = {"type": "array", "items": ["null", record(("x" * 10_000, "null"))]}
    assert reason_of(schema, b"\x80\x88\x1e" + b"\x02" * 30_000 + b"\x00") is RejectReason.TOO_LARGE


ROW = record(("answer", "string"))


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_the_records_of_a_file_are_as_many_texts(codec: str) -> None:
    texts = avro_file_as_json(file_of(ROW, [{"answer": "a"}, {"answer": "b" * 1000}], codec), max_bytes=MAX_BYTES)
    assert [json.loads(text)["answer"][:1] for text in texts] == ["a", "b"]
    assert avro_file_as_json(file_of(ROW, [], codec), max_bytes=MAX_BYTES) == ()


def refusal_of(value: bytes) -> RejectReason:
    with pytest.raises(UnusablePayload) as raised:
        avro_file_as_json(value, max_bytes=MAX_BYTES)
    return raised.value.reason


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_what_a_file_holds_is_bounded(codec: str) -> None:
    bomb = file_of(ROW, [{"answer": "a" * 900_000}] * 40, codec)
    assert refusal_of(bomb) in (RejectReason.TOO_LARGE, RejectReason.INVALID_ENCODING)
    assert refusal_of(file_of(ROW, [{"answer": ""}] * (MAX_ROWS + 1), codec)) is RejectReason.TOO_MANY_ROWS


def test_a_broken_file_has_a_name() -> None:
    value = file_of(ROW, [{"answer": "a"}])
    assert refusal_of(value[:-1]) is RejectReason.INVALID_ENCODING
    assert refusal_of(value[:-1] + b"\x00") is RejectReason.INVALID_ENCODING
    assert refusal_of(b"Obj\x01") is RejectReason.INVALID_ENCODING
    assert refusal_of(value.replace(b"null", b"bzip")) is RejectReason.UNSUPPORTED_ENCODING
    assert refusal_of(value.replace(b'"record"', b'"recoid"')) is RejectReason.UNKNOWN_SCHEMA


leaves = st.sampled_from(["null", "boolean", "int", "long", "double", "string", "bytes"])
kinds = st.recursive(
    leaves,
    lambda inner: (
        inner.map(lambda one: {"type": "array", "items": one})
        | inner.map(lambda one: {"type": "map", "values": one})
        | inner.map(lambda one: one if isinstance(one, list) or one == "null" else ["null", one])
    ),
    max_leaves=4,
)


@st.composite
def records(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema, and a value of it."""
    fields = draw(st.lists(kinds, min_size=1, max_size=4))
    schema = record(*((f"f{number}", kind) for number, kind in enumerate(fields)))
    return schema, {f"f{number}": draw(values_of(kind)) for number, kind in enumerate(fields)}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, list):
        return st.none() | values_of(kind[1])
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return st.lists(values_of(kind["items"]), max_size=3)
        return st.dictionaries(st.text(max_size=3), values_of(kind["values"]), max_size=3)
    return {
        "null": st.none(),
        "boolean": st.booleans(),
        "int": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "double": st.floats(allow_nan=False, allow_infinity=False),
        "string": st.text(st.characters(codec="utf-8")),
        "bytes": st.text(st.characters(codec="utf-8")).map(str.encode),
    }[kind]


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


@given(records())
@settings(max_examples=bar(200, 75), deadline=None)
def test_whatever_fastavro_writes_is_read_as_it_was(case: tuple[Any, Any]) -> None:
    schema, value = case
    assert round_trip(schema, value) == plain(value)


@given(records(), st.binary(max_size=60), st.integers(0, 60))
@settings(max_examples=bar(300, 75), deadline=None)
def test_no_bytes_raise_anything_but_the_refusal(case: tuple[Any, Any], junk: bytes, place: int) -> None:
    schema, value = case
    good, told = written(schema, value), list[str]()
    for one in (junk, good[:place] + junk, good[:place] + junk + good[place + len(junk) :]):
        try:
            json.loads(avro_as_json(one, schema_of(schema)))
        except UnusablePayload as refused:
            told.append(refused.detail)
    assert all(told)


@given(st.binary(max_size=40), st.integers(0, 200))
@settings(max_examples=bar(300, 75), deadline=None)
def test_no_file_raises_anything_but_the_refusal(junk: bytes, place: int) -> None:
    good, told = file_of(NODE, [{"text": "a", "next": None, "more": []}], "deflate"), list[str]()
    for one in (b"Obj\x01" + junk, good[:place] + junk + good[place + len(junk) :]):
        try:
            avro_file_as_json(one, max_bytes=MAX_BYTES)
        except UnusablePayload as refused:
            told.append(refused.detail)
    assert all(told)
