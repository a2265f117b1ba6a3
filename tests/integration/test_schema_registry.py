"""Schemas from a registry: a real Apicurio, and a server that keeps to Confluent's interface where that is wanting."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

import worker.schema_registry.registry as registry_module
from schemas.decoding import Decoded, Rejected, Result, decode_payload
from schemas.encodings.schema import KeyKind, Schema, SchemaKey, SchemaKind, Schemas
from schemas.reject_reason import RejectReason
from tests.apicurio import Apicurio, ApicurioCannotRun, apicurio
from tests.certificates import write_certificates
from tests.registry_server import RegistryServer, registry_server
from worker.errors import SchemasUnavailable, SettingsError
from worker.schema_registry.cache import KEEP_MISSING_S, CachedSchemas
from worker.schema_registry.registry import MAX_REPLY_BYTES, SchemaRegistry
from worker.schema_registry.schemas import opened_schemas
from worker.settings.schema_registry import SchemaRegistryChoice

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PASSAGE = {"type": "record", "name": "rag.Passage", "fields": [{"name": "text", "type": "string"}]}
ROW = {
    "type": "record",
    "name": "rag.Row",
    "fields": [
        {"name": "question", "type": "string"},
        {"name": "passages", "type": {"type": "array", "items": "rag.Passage"}},
        {"name": "answer", "type": "string"},
    ],
}
VALUE = {"question": "How long?", "passages": [{"text": "30 days."}], "answer": "30 days."}
COMMON = 'syntax = "proto3"; package rag; message Passage { string text = 1; }'
PROTO = """syntax = "proto3"; package rag; import "common.proto"; import "google/protobuf/timestamp.proto";
message Other { string a = 1; }
message Row { string question = 1; repeated Passage passages = 2; string answer = 3; google.protobuf.Timestamp t = 4; }
"""
GUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
ID = SchemaKey(KeyKind.ID, "7")


def avro_value() -> bytes:
    buffer = io.BytesIO()
    named: dict[str, dict[Any, Any]] = {}
    fastavro.parse_schema(PASSAGE, named_schemas=named)
    schema = fastavro.parse_schema(ROW, named_schemas=named)
    fastavro.schemaless_writer(buffer, schema, VALUE)
    return buffer.getvalue()


def proto_value() -> bytes:
    return b"\x0a\x09How long?\x12\x0a\x0a\x0830 days.\x1a\x0830 days."


def framed(number: int, payload: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + payload


def read(value: bytes, schemas: Schemas, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Result:
    (result,) = decode_payload(
        value, headers, max_bytes=100_000, default_app="d", received_at=NOW, schemas=schemas
    ).results
    return result


def assert_read(result: Result) -> None:
    assert isinstance(result, Decoded), result
    assert result.interaction.answer == "30 days."
    assert [passage.text for passage in result.interaction.passages] == ["30 days."]


def choice(url: str, **others: object) -> SchemaRegistryChoice:
    return SchemaRegistryChoice.model_validate({"schema_registry_url": url, **others})


@pytest.fixture(scope="module")
def real() -> Iterator[Apicurio]:
    try:
        with apicurio() as running:
            yield running
    except ApicurioCannotRun as reason:
        pytest.skip(f"Apicurio cannot run: {reason}")


def test_messages_are_read_by_the_schemas_of_a_real_registry(real: Apicurio) -> None:
    real.register("rag.Passage", json.dumps(PASSAGE))
    row = real.register("rows-value", json.dumps(ROW), references=("rag.Passage",))
    real.register("common.proto", COMMON, "PROTOBUF")
    proto = real.register("proto-value", PROTO, "PROTOBUF", ("common.proto",))
    with opened_schemas(choice(real.url)) as schemas:
        assert_read(read(framed(row, avro_value()), schemas))
        assert_read(read(framed(proto, b"\x02\x02" + proto_value()), schemas))
        # As Apicurio's own serialisers name them: ids of eight bytes, in front or in a header.
        assert_read(read(b"\x00" + row.to_bytes(8, "big") + avro_value(), schemas))
        assert_read(read(b"\x00" + proto.to_bytes(8, "big") + b"\x05\x0a\x03Row" + proto_value(), schemas))
        content = ("apicurio.value.contentId", row.to_bytes(8, "big"))
        assert_read(read(avro_value(), schemas, (content,)))
        unknown = read(framed(4321, avro_value()), schemas)
        assert isinstance(unknown, Rejected)
        assert unknown.reason is RejectReason.UNKNOWN_SCHEMA


def test_a_real_registry_that_is_away_is_waited_for(real: Apicurio) -> None:
    with opened_schemas(choice(real.url)) as schemas:
        number = real.register("away-value", json.dumps(PASSAGE))
        real.stop()
        with pytest.raises(SchemasUnavailable):
            read(framed(number, avro_value()), schemas)
        real.start()
        number = real.register("rag.Passage", json.dumps(PASSAGE))
        number = real.register("rows-value", json.dumps(ROW), references=("rag.Passage",))
        assert_read(read(framed(number, avro_value()), schemas))


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> Iterator[SchemaRegistry]:
    found = SchemaRegistry(choice(f"{server.url}/"))
    yield found
    found.close()


def test_a_schema_is_known_by_its_guid(server: RegistryServer, registry: SchemaRegistry) -> None:
    server.knows(f"/schemas/guids/{GUID}", '"string"')
    assert registry.look_up(SchemaKey(KeyKind.GUID, GUID)) == Schema(SchemaKind.AVRO, '"string"')
    # An older registry has no such way of asking, and says so in its own words.
    server.status, server.body = 404, b"not here"
    assert registry.look_up(SchemaKey(KeyKind.GUID, GUID)) is None


def test_references_come_along_with_theirs(server: RegistryServer, registry: SchemaRegistry) -> None:
    reference: dict[str, object] = {"name": "b.proto", "subject": "b/b", "version": 2}
    server.knows("/schemas/ids/7", 'import "b.proto";', "PROTOBUF", [reference])
    server.knows("/subjects/b/b/versions/2", "", "PROTOBUF", [{"name": "c", "subject": "c", "version": 1}])
    server.knows("/subjects/c/versions/1", "", "PROTOBUF")
    found = registry.look_up(ID)
    assert found is not None
    assert [one.name for one in found.references] == ["b.proto"]
    assert [one.name for one in found.references[0].references] == ["c"]


def test_references_without_end_are_refused(server: RegistryServer, registry: SchemaRegistry) -> None:
    server.knows("/schemas/ids/7", "", "PROTOBUF", [{"name": "a", "subject": "a", "version": 1}])
    server.knows("/subjects/a/versions/1", "", "PROTOBUF", [{"name": "a", "subject": "a", "version": 1}])
    with pytest.raises(SettingsError):
        registry.look_up(ID)


@pytest.mark.parametrize("kind", ["THRIFT", ""])
def test_a_kind_that_nobody_knows_is_no_schema(server: RegistryServer, registry: SchemaRegistry, kind: str) -> None:
    server.knows("/schemas/ids/7", "x", kind)
    assert registry.look_up(ID) is None


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_may_pass_is_waited_for(server: RegistryServer, registry: SchemaRegistry, status: int) -> None:
    server.status = status
    with pytest.raises(SchemasUnavailable):
        registry.look_up(ID)
    server.status = None
    assert registry.look_up(ID) is None


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 405])
def test_what_only_a_person_can_mend_names_the_setting(
    server: RegistryServer, registry: SchemaRegistry, status: int
) -> None:
    server.status, server.body = status, b"<html>no registry</html>"
    with pytest.raises(SettingsError, match="GASP_SCHEMA_REGISTRY_"):
        registry.look_up(ID)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"schema": 5}', b"\xff"])
def test_an_answer_of_something_else_names_the_setting(
    server: RegistryServer, registry: SchemaRegistry, body: bytes
) -> None:
    server.status, server.body = 200, body
    with pytest.raises(SettingsError, match="GASP_SCHEMA_REGISTRY_URL"):
        registry.look_up(ID)


def test_an_answer_without_end_is_not_read_to_it(server: RegistryServer, registry: SchemaRegistry) -> None:
    server.body = b" " * (MAX_REPLY_BYTES + 1)
    with pytest.raises(SchemasUnavailable, match="more than"):
        registry.look_up(ID)


def test_a_registry_that_says_nothing_is_waited_for(
    server: RegistryServer, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "REQUEST_TIMEOUT_S", 0.2)
    server.is_silent = True
    with pytest.raises(SchemasUnavailable, match="TimeoutError"):
        registry.look_up(ID)


@pytest.mark.parametrize(
    ("login", "header"),
    [
        (
            {"schema_registry_user": "u", "schema_registry_password": "p:ü"},
            "Basic " + base64.b64encode("u:p:ü".encode()).decode(),
        ),
        ({"schema_registry_token": "t"}, "Bearer t"),
    ],
)
def test_who_asks_says_so(server: RegistryServer, login: dict[str, str], header: str) -> None:
    server.authorization = header
    server.knows("/schemas/ids/7", '"string"')
    with opened_schemas(choice(server.url, **login)) as schemas:
        assert schemas.of(ID).text == '"string"'
    with opened_schemas(choice(server.url)) as schemas, pytest.raises(SettingsError, match="401"):
        schemas.of(ID)


def test_a_registry_with_a_certificate_of_ones_own_is_trusted_by_its_authority(tmp_path: Path) -> None:
    write_certificates(tmp_path)
    with registry_server(tmp_path / "server.pem") as secured:
        secured.knows("/schemas/ids/7", '"string"')
        with opened_schemas(choice(secured.url, schema_registry_cafile=tmp_path / "ca.pem")) as schemas:
            assert schemas.of(ID).text == '"string"'
        with (
            opened_schemas(choice(secured.url, schema_registry_cafile=tmp_path / "other-ca.pem")) as schemas,
            pytest.raises(SettingsError, match="CAFILE"),
        ):
            schemas.of(ID)
        (tmp_path / "none.pem").write_text("no certificate")
        with (
            pytest.raises(SettingsError, match="CAFILE"),
            opened_schemas(choice(secured.url, schema_registry_cafile=tmp_path / "none.pem")),
        ):
            pass


def test_a_schema_is_asked_for_once_and_one_that_is_missing_again_later(
    server: RegistryServer, registry: SchemaRegistry
) -> None:
    now = 0.0
    cached = CachedSchemas(registry, lambda: now)
    assert cached.look_up(ID) is None
    server.knows("/schemas/ids/7", '"string"')
    assert cached.look_up(ID) is None
    now = KEEP_MISSING_S
    assert cached.look_up(ID) == cached.look_up(ID) == Schema(SchemaKind.AVRO, '"string"')
    assert len(server.asked) == 2
