"""Protobuf as JSON: messages that the library wrote by schemas that are text or descriptors."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pb2, struct_pb2, timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.encodings.proto_text import NotProto, file_of_text
from schemas.encodings.protobuf import protobuf_as_json
from schemas.encodings.schema import Schema, SchemaKind
from schemas.errors import UnusablePayload
from schemas.reject_reason import RejectReason
from tests.bars import bar

TEXT = """
// A comment; with "quotes".
syntax = "proto3"; /* another
one */ package rag.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import public "google/protobuf/wrappers.proto";
import "buf/validate/validate.proto";
option java_package = "org.example";
option (buf.rules) = { list: [1, 2], text: "};" };
enum Kind { option allow_alias = true; UNKNOWN = 0; GOOD = 1; FINE = 1 [deprecated = true]; ODD = -2; reserved 5; }
message Passage {
  string id = 1;
  string text = 2 [(buf.validate.field).string = {min_len: 1, pattern: "[;}]"}];
  optional double score = 3;
  float weight = 4;
  map<string, string> meta = 0x5;
}
message Interaction {
  reserved 50 to 60, 70; reserved "gone";
  string interaction_id = 1;
  repeated Passage passages = 2;
  string answer = 3;
  google.protobuf.Timestamp at = 4;
  google.protobuf.Struct extra = 5;
  Kind kind = 6;
  int64 count = 7;
  oneof who { option (x) = true; string user = 8; int32 number = 9; }
  bytes raw = 10;
  google.protobuf.StringValue note = 11;
  google.protobuf.Any any = 12;
  message Inner { Interaction again = 1; enum Deep { NONE = 0; } Deep deep = 2; }
  Inner inner = 13;
  map<int32, .rag.v1.Passage> by_number = 14;
  repeated int32 numbers = 15;
  repeated google.protobuf.Value values = 16;
  extensions 100 to max;
  ;
}
service Log { rpc Get(Passage) returns (stream Interaction) { option (google.api.http) = { get: "/x" }; } }
"""
SCHEMA = Schema(SchemaKind.PROTOBUF, TEXT)
INTERACTION = b"\x02\x02"


def number(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(place: int, content: bytes) -> bytes:
    """A field with a length: a text, bytes, or a message."""
    return number(place << 3 | 2) + number(len(content)) + content


def read(value: bytes, schema: Schema = SCHEMA, front: bytes = INTERACTION) -> Any:
    return json.loads(protobuf_as_json(front + value, schema))


def reason_of(value: bytes, schema: Schema = SCHEMA) -> RejectReason:
    with pytest.raises(UnusablePayload) as raised:
        protobuf_as_json(value, schema)
    return raised.value.reason


def test_what_is_there_is_written_and_what_is_not_is_left_out() -> None:
    assert read(b"") == {
        "interaction_id": "",
        "passages": [],
        "answer": "",
        "by_number": {},
        "numbers": [],
        "values": [],
    }
    passage = (
        field(1, b"kb-1") + b"\x19" + bytes(8) + b"\x25\xe1\x7a\x54\x3f" + field(5, field(1, b"a") + field(2, b"b"))
    )
    assert read(field(2, passage))["passages"] == [
        {"id": "kb-1", "text": "", "score": 0.0, "weight": 0.83, "meta": {"a": "b"}}
    ]


def test_values_are_written_as_a_person_would() -> None:
    extra = struct_pb2.Struct()
    extra.update({"a": [1, "x", None, {"b": True}]})
    value = (
        field(4, timestamp_pb2.Timestamp(seconds=1_796_030_100, nanos=5_000_000).SerializeToString())
        + field(5, extra.SerializeToString())
        + b"\x30\x01\x38\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x48\x00"
        + field(10, b"\xff")
        + field(11, b"")
        + field(13, field(1, field(3, b"deep")))
        + field(14, b"\x08\x03" + field(2, field(2, b"t")))
        + field(15, b"\x01\x02")
        + field(16, struct_pb2.Value(number_value=2).SerializeToString())
    )
    found = read(value)
    assert found["at"] == "2026-11-30T09:15:00.005Z"
    assert found["extra"] == {"a": [1, "x", None, {"b": True}]}
    assert (found["kind"], found["count"], found["number"]) == ("GOOD", 2**63 - 1, 0)
    assert (found["raw"], found["note"], found["numbers"], found["values"]) == ("/w==", "", [1, 2], [2])
    assert found["inner"]["again"]["answer"] == "deep"
    assert found["by_number"]["3"]["text"] == "t"


def test_a_symbol_that_the_schema_has_not_stays_a_number() -> None:
    assert read(b"\x30\x09")["kind"] == 9


def test_a_message_of_any_type_is_that_type_if_the_schema_has_it() -> None:
    packed = any_pb2.Any(type_url="type.googleapis.com/rag.v1.Passage", value=field(2, b"t"))
    assert read(field(12, packed.SerializeToString()))["any"]["text"] == "t"
    foreign = any_pb2.Any(type_url="type.googleapis.com/x.Y", value=b"\x08\x01")
    assert read(field(12, foreign.SerializeToString()))["any"] == {"@type": foreign.type_url, "value": "CAE="}


@pytest.mark.parametrize(
    ("front", "name"),
    [
        (b"\x00", "passage"),
        (b"\x02\x00", "passage"),
        (b"\x02\x02", "interaction"),
        (b"\x04\x02\x00", "inner"),
        (b"\x0d\x0a\x0bInteraction", "interaction"),
    ],
)
def test_which_message_it_is_stands_in_front(front: bytes, name: str) -> None:
    keys = {"passage": "meta", "interaction": "answer", "inner": None}
    found = read(b"", front=front)
    assert (keys[name] in found) if keys[name] else found == {}


def test_which_message_it_is_may_be_told_apart_from_the_value() -> None:
    assert json.loads(protobuf_as_json(field(3, b"Yes."), SCHEMA, INTERACTION))["answer"] == "Yes."
    one = Schema(SchemaKind.PROTOBUF, 'syntax = "proto3"; message A { string answer = 1; }')
    assert json.loads(protobuf_as_json(field(1, b"Yes."), one, b"")) == {"answer": "Yes."}
    with pytest.raises(UnusablePayload):
        protobuf_as_json(b"", SCHEMA, b"")
    named = Schema(SchemaKind.PROTOBUF, TEXT, message="rag.v1.Passage")
    assert json.loads(protobuf_as_json(field(2, b"t"), named))["text"] == "t"
    assert reason_of(b"", Schema(SchemaKind.PROTOBUF, TEXT, message="rag.v1.Nobody")) is RejectReason.UNKNOWN_SCHEMA


def test_a_descriptor_in_base64_is_a_schema_as_its_text_is() -> None:
    descriptor = base64.b64encode(file_of_text(TEXT, "a.proto").SerializeToString()).decode()
    assert read(field(3, b"Yes."), Schema(SchemaKind.PROTOBUF, descriptor))["answer"] == "Yes."


def test_what_a_schema_imports_is_known_whatever_form_it_has() -> None:
    inner = 'syntax = "proto3"; package common; message Passage { string text = 1; }'
    middle = 'syntax = "proto3"; package common; import "inner.proto"; message Hit { Passage passage = 1; }'
    outer = 'syntax = "proto3"; package app; import "middle.proto"; message Row { repeated common.Hit hits = 1; }'
    descriptor = base64.b64encode(file_of_text(inner, "x").SerializeToString()).decode()
    for text in (inner, descriptor):
        reference = Schema(SchemaKind.PROTOBUF, text, name="inner.proto")
        second = Schema(SchemaKind.PROTOBUF, middle, (reference,), name="middle.proto")
        schema = Schema(SchemaKind.PROTOBUF, outer, (second,))
        assert read(field(1, field(1, field(1, b"t"))), schema, b"\x00") == {"hits": [{"passage": {"text": "t"}}]}
    assert reason_of(b"\x00", Schema(SchemaKind.PROTOBUF, outer)) is RejectReason.UNKNOWN_SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "message A { required string a = 1; optional int32 b = 2 [default = 5]; extensions 5 to 9; } extend A { }",
        'syntax = "proto2"; message A { optional string a = 1; oneof b { int32 c = 2; } } option x = 5;',
        'edition = "2023"; message A { string a = 1; }',
        "message A { optional string a = 1; }",
        'syntax = "proto3"; message A { string a = 1; string option = 2; string message = 3; reserved 4; }',
        "syntax = 'proto3'; message A { string a = 1; enum reserved { X = 0; } }",
    ],
)
def test_every_syntax_is_read(text: str) -> None:
    assert read(field(1, b"Yes."), Schema(SchemaKind.PROTOBUF, text), b"\x00")["a"] == "Yes."


@pytest.mark.parametrize(
    "text",
    [
        *("message A {", "message A { B b = 1; }", "message A { string a = x; }", "AAAA", "message { }", "§", '"'),
        *("message A {" * 200, "option x = {", 'import "google/protobuf/none.proto"; message A {}', "/* never closed"),
        "message A { optional group B = 1 { } }",
        "message A { string a = 1; string b = 1; }",
    ],
)
def test_a_schema_that_cannot_be_used_has_a_name(text: str) -> None:
    assert reason_of(b"\x00", Schema(SchemaKind.PROTOBUF, text)) is RejectReason.UNKNOWN_SCHEMA


def test_schemas_that_import_each_other_are_refused() -> None:
    other = Schema(SchemaKind.PROTOBUF, 'import "schema.proto";', name="a.proto")
    schema = Schema(SchemaKind.PROTOBUF, 'import "a.proto"; message A {}', (other,))
    assert reason_of(b"\x00", schema) is RejectReason.UNKNOWN_SCHEMA


def nested(times: int) -> bytes:
    value = b""
    for _ in range(times):
        value = field(13, field(1, value))
    return value


def any_of_any(times: int) -> bytes:
    value = b""
    for _ in range(times):
        value = field(12, field(1, b"t/rag.v1.Interaction") + field(2, value))
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", RejectReason.INVALID_ENCODING),
        (b"\xff" * 8, RejectReason.INVALID_ENCODING),
        (b"\x02\x06", RejectReason.INVALID_ENCODING),
        (b"\x03", RejectReason.INVALID_ENCODING),
        (INTERACTION + b"\xff\xff", RejectReason.INVALID_ENCODING),
        (INTERACTION + field(3, b"\xff"), RejectReason.INVALID_ENCODING),
        (INTERACTION + nested(3000), RejectReason.INVALID_ENCODING),
        (INTERACTION + any_of_any(120), RejectReason.TOO_DEEP),
        (INTERACTION + field(15, b"\x01" * 1_000_001), RejectReason.TOO_LARGE),
        (b"\x00\x19\x00\x00\x00\x00\x00\x00\xf8\x7f", RejectReason.NON_FINITE_NUMBER),
    ],
)
def test_hostile_bytes_have_a_name(value: bytes, reason: RejectReason) -> None:
    assert reason_of(value) is reason


@given(st.binary(max_size=80), st.binary(max_size=4))
@settings(max_examples=bar(500, 150), deadline=None)
def test_no_bytes_raise_anything_but_the_refusal(value: bytes, front: bytes) -> None:
    told: list[str] = []
    for one in (front + value, INTERACTION + value, b"\x00" + value):
        try:
            json.loads(protobuf_as_json(one, SCHEMA))
        except UnusablePayload as refused:
            told.append(refused.detail)
    assert all(told)


words = st.sampled_from(
    [*"{}[]();=<>,", "message", "enum", "oneof", "map", "A", "string", "1", "option", "syntax", '"proto3"', "import"]
)


@given(st.lists(words, max_size=20).map(" ".join) | st.text(max_size=30))
@settings(max_examples=bar(500, 150), deadline=None)
def test_no_text_raises_anything_but_that_it_is_no_schema(text: str) -> None:
    try:
        found = file_of_text(text, "a.proto")
    except NotProto:
        return
    assert isinstance(found, descriptor_pb2.FileDescriptorProto)
    with contextlib.suppress(UnusablePayload):
        protobuf_as_json(b"\x00", Schema(SchemaKind.PROTOBUF, text))
