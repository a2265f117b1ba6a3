"""Values whose schema is in a registry: frames of every kind, and what becomes of those that cannot be read."""

from __future__ import annotations

import io
import json
import uuid
import zlib
from datetime import UTC, datetime

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.decoding import Decoded, Rejected, Result, decode_payload
from schemas.encodings.schema import KeyKind, Schema, SchemaKey, SchemaKind, Schemas
from schemas.formats import AUTO
from schemas.reject_reason import RejectReason
from tests.bars import bar

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ROW = {"id": "r1", "question": "How long?", "contexts": ["30 days."], "answer": "30 days."}
AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "question", "type": "string"},
        {"name": "contexts", "type": {"type": "array", "items": "string"}},
        {"name": "answer", "type": "string"},
    ],
}
PROTO = """syntax = "proto3";
message Other { string nothing = 1; }
message Row { string id = 1; string question = 2; repeated string contexts = 3; string answer = 4; }"""
GUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

AVRO_SCHEMA = Schema(SchemaKind.AVRO, json.dumps(AVRO))
PROTO_SCHEMA = Schema(SchemaKind.PROTOBUF, PROTO)
JSON_SCHEMA = Schema(SchemaKind.JSON, "{}")


class Away(Exception):  # noqa: N818 - a registry that does not answer
    """What a source raises that is not for ever."""


class Source:
    """Knows the schemas that it is given; any other key is unknown, and 99 is no answer."""

    def __init__(self, known: dict[SchemaKey, Schema]) -> None:
        self._known = known

    def look_up(self, key: SchemaKey) -> Schema | None:
        if key.value == "99":
            raise Away
        return self._known.get(key)


SCHEMAS = Schemas(
    Source(
        {
            SchemaKey(KeyKind.ID, "7"): AVRO_SCHEMA,
            SchemaKey(KeyKind.ID, "8"): PROTO_SCHEMA,
            SchemaKey(KeyKind.ID, "9"): JSON_SCHEMA,
            SchemaKey(KeyKind.GUID, GUID): AVRO_SCHEMA,
            SchemaKey(KeyKind.GLOBAL_ID, "7"): AVRO_SCHEMA,
            SchemaKey(KeyKind.CONTENT_ID, "7"): AVRO_SCHEMA,
            SchemaKey(KeyKind.GLUE, GUID): AVRO_SCHEMA,
        }
    )
)


def avro(value: object = ROW) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(AVRO), value)
    return buffer.getvalue()


def protobuf() -> bytes:
    texts = (ROW["id"], ROW["question"], "30 days.", ROW["answer"])
    return b"".join(bytes([place << 3 | 2, len(str(one))]) + str(one).encode() for place, one in enumerate(texts, 1))


def framed(number: int, payload: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + payload


def read(
    value: bytes,
    headers: tuple[tuple[str, bytes | None], ...] = (),
    schemas: Schemas = SCHEMAS,
    format_name: str = AUTO,
) -> Result:
    (result,) = decode_payload(
        value,
        headers,
        max_bytes=100_000,
        default_app="d",
        received_at=NOW,
        schemas=schemas,
        format_name=format_name,
    ).results
    return result


def refused(value: bytes, schemas: Schemas = SCHEMAS, format_name: str = AUTO) -> Rejected:
    result = read(value, schemas=schemas, format_name=format_name)
    assert isinstance(result, Rejected), result
    return result


BYTES = uuid.UUID(GUID).bytes


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (framed(7, avro()), ()),
        (b"\x01" + BYTES + avro(), ()),
        (avro(), (("__value_schema_id", framed(7, b"")),)),
        (avro(), (("__value_schema_id", b"\x01" + BYTES),)),
        (framed(8, b"\x02\x02" + protobuf()), ()),
        (protobuf(), (("__value_schema_id", framed(8, b"\x02\x02")),)),
        (b"\x00" + (7).to_bytes(8, "big") + avro(), ()),
        (avro(), (("apicurio.value.globalId", (7).to_bytes(8, "big")),)),
        (avro(), (("apicurio.value.contentId", (7).to_bytes(8, "big")),)),
        (b"\x03\x00" + BYTES + avro(), ()),
        (b"\x03\x05" + BYTES + zlib.compress(avro()), ()),
        (b"\x03\x05" + BYTES + zlib.compress(json.dumps(ROW).encode()), ()),
        (framed(9, json.dumps(ROW).encode()), ()),
        (framed(99, json.dumps(ROW).encode()), ()),
        (json.dumps(ROW).encode(), (("__value_schema_id", framed(99, b"")),)),
    ],
)
def test_a_framed_value_is_read_by_the_schema_that_it_names(
    value: bytes, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    found = read(value, headers)
    assert isinstance(found, Decoded), found
    assert (found.interaction.interaction_id, found.interaction.answer) == ("r1", "30 days.")
    assert [passage.text for passage in found.interaction.passages] == ["30 days."]


def test_without_a_registry_the_setting_is_named() -> None:
    without = refused(framed(7, avro()), Schemas())
    assert without.reason is RejectReason.UNSUPPORTED_ENCODING
    assert "GASP_SCHEMA_REGISTRY_URL" in without.detail
    plain = refused(avro(), Schemas())
    assert plain.reason is RejectReason.UNSUPPORTED_ENCODING
    assert "GASP_MESSAGE_SCHEMA_FILE" in plain.detail


def test_a_schema_that_nobody_knows_is_a_dead_letter() -> None:
    assert refused(framed(1234, avro())) == Rejected(
        RejectReason.UNKNOWN_SCHEMA, "id 1234: the registry knows no such schema"
    )


def test_a_registry_that_does_not_answer_is_no_fault_of_the_message() -> None:
    with pytest.raises(Away):
        read(framed(99, avro()))


def test_what_is_not_of_its_schema_is_refused() -> None:
    assert refused(framed(7, avro()[:-1])).reason is RejectReason.INVALID_ENCODING
    assert refused(framed(7, avro() + b"\x00")).reason is RejectReason.INVALID_ENCODING
    assert refused(framed(8, b"\x02\x04" + protobuf())).reason is RejectReason.INVALID_ENCODING
    assert refused(framed(9, b"{broken")).reason is RejectReason.INVALID_JSON
    assert refused(framed(7, b"")).reason is RejectReason.EMPTY_VALUE
    assert refused(b"\x03\x05" + BYTES + zlib.compress(bytes(200_000))).reason is RejectReason.TOO_LARGE


def test_a_schema_of_the_topic_reads_values_without_a_frame() -> None:
    for plain, value in (
        (AVRO_SCHEMA, avro()),
        (Schema(SchemaKind.PROTOBUF, PROTO, message="Row"), protobuf()),
    ):
        schemas = Schemas(plain=plain)
        assert isinstance(read(value, schemas=schemas), Decoded)
        assert isinstance(read(value, schemas=schemas, format_name=plain.kind), Decoded)
        assert isinstance(read(json.dumps(ROW).encode(), schemas=schemas), Decoded)
        assert refused(b"{broken", schemas).reason is RejectReason.INVALID_JSON
        assert refused(value[:-1], schemas).reason is RejectReason.INVALID_ENCODING


def test_plain_avro_that_looks_framed_is_read_by_the_schema_of_the_topic() -> None:
    value = avro({**ROW, "id": "", "question": ""})
    assert value.startswith(b"\x00\x00")
    assert isinstance(read(value, schemas=Schemas(plain=AVRO_SCHEMA)), Decoded)


def test_an_encoding_that_is_set_is_the_only_one_that_is_read() -> None:
    assert isinstance(read(framed(7, avro()), format_name="avro"), Decoded)
    assert refused(framed(8, b"\x02\x02" + protobuf()), format_name="avro") == Rejected(
        RejectReason.INVALID_ENCODING, "avro: its schema is one of protobuf"
    )
    assert refused(json.dumps(ROW).encode(), format_name="protobuf").reason is RejectReason.UNSUPPORTED_ENCODING


def test_a_file_of_avro_brings_its_schema_along() -> None:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(AVRO), [ROW, {**ROW, "id": "r2"}], codec="deflate")
    results = decode_payload(
        buffer.getvalue(), (), max_bytes=100_000, default_app="d", received_at=NOW, format_name="avro"
    ).results
    assert [one.interaction.interaction_id for one in results if isinstance(one, Decoded)] == ["r1", "r2"]


frames = st.sampled_from(
    [
        *(framed(number, b"") for number in (1, 7, 8, 9)),
        *(b"\x01" + BYTES, b"\x03\x00" + BYTES, b"\x03\x05" + BYTES, b"Obj\x01", b"\x00" + bytes(7) + b"\x07", b""),
    ]
)
header_lists = st.lists(
    st.tuples(
        st.sampled_from(["__value_schema_id", "apicurio.value.globalId", "apicurio.value.contentId"]),
        st.none() | st.binary(max_size=20) | frames,
    ),
    max_size=2,
).map(tuple)


@given(frames, st.binary(max_size=60) | st.just(avro()) | st.just(b"\x02\x02" + protobuf()), header_lists)
@settings(max_examples=bar(600, 150), deadline=None)
def test_whatever_is_framed_has_an_outcome(
    frame: bytes, payload: bytes, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    for schemas in (SCHEMAS, Schemas(), Schemas(plain=AVRO_SCHEMA)):
        reading = decode_payload(
            frame + payload, headers, max_bytes=100_000, default_app="d", received_at=NOW, schemas=schemas
        )
        assert reading.results or reading.pieces
