"""The schema of values without a frame, from files of every kind, and the settings around it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pydantic import ValidationError

from schemas.encodings.proto_text import file_of_text
from schemas.encodings.protobuf import protobuf_as_json
from schemas.encodings.schema import SchemaKind
from worker.errors import SettingsError
from worker.schema_registry.schema_file import read_schema_file
from worker.schema_registry.schemas import opened_schemas
from worker.settings.schema_registry import SchemaRegistryChoice

COMMON = 'syntax = "proto3"; package rag; message Passage { string text = 1; }'
ROW = 'syntax = "proto3"; package rag; import "rag/common.proto"; message Row { Passage passage = 1; }'
VALUE = b"\x0a\x03\x0a\x01t"


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    (tmp_path / "rag").mkdir()
    (tmp_path / "rag" / "common.proto").write_text(COMMON)
    path = tmp_path / "row.proto"
    path.write_text(ROW)
    return path


def test_a_proto_file_brings_along_what_lies_beside_it(proto: Path) -> None:
    schema = read_schema_file(proto, "rag.Row")
    assert json.loads(protobuf_as_json(VALUE, schema)) == {"passage": {"text": "t"}}


def test_a_set_of_descriptors_is_read(proto: Path) -> None:
    files = FileDescriptorSet(file=[file_of_text(COMMON, "rag/common.proto"), file_of_text(ROW, "row.proto")])
    path = proto.with_suffix(".binpb")
    path.write_bytes(files.SerializeToString())
    for name, value in (("rag.Row", VALUE), ("rag.Passage", b"\x0a\x01t")):
        assert b'"t"' in protobuf_as_json(value, read_schema_file(path, name))


def test_a_schema_of_avro_is_read(tmp_path: Path) -> None:
    path = tmp_path / "row.avsc"
    path.write_text('"string"')
    choice = SchemaRegistryChoice.model_validate({"message_schema_file": path})
    with opened_schemas(choice) as schemas:
        assert schemas.source is None
        assert schemas.plain is not None
        assert schemas.plain.kind is SchemaKind.AVRO


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.avsc", b'{"type": "nosuch"}', None),
        ("a.avsc", b"\xff", None),
        ("a.proto", b"message A {", "A"),
        ("a.proto", b"message A {}", "B"),
        ("a.proto", b'import "b.proto"; message A { B b = 1; }', "A"),
        ("a.desc", b"\xff\xff", "A"),
        ("a.desc", b"", "A"),
    ],
)
def test_a_file_that_is_no_schema_names_the_setting(
    tmp_path: Path, name: str, content: bytes, message: str | None
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="GASP_MESSAGE_SCHEMA_FILE"):
        read_schema_file(path, message)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"schema_registry_url": "registry:8081"}, "schema_registry_url"),
        ({"schema_registry_url": "https://"}, "schema_registry_url"),
        ({"schema_registry_url": "https://u:secret-word@host"}, "schema_registry_url"),
        ({"schema_registry_url": "https://host:port"}, "schema_registry_url"),
        ({"schema_registry_url": "https://host", "schema_registry_user": "u"}, "schema_registry_password"),
        ({"schema_registry_url": "https://host", "schema_registry_password": "p"}, "schema_registry_password"),
        ({"schema_registry_token": "secret-word"}, "schema_registry_token"),
        ({"schema_registry_url": "http://host", "schema_registry_token": "secret-word"}, "schema_registry_token"),
        (
            {
                "schema_registry_url": "https://host",
                "schema_registry_user": "u",
                "schema_registry_password": "p",
                "schema_registry_token": "t",
            },
            "schema_registry_token",
        ),
        ({"schema_registry_cafile": "/no/such/file"}, "schema_registry_cafile"),
        ({"message_schema_file": "/no/such/file"}, "message_schema_file"),
        ({"message_schema_type": "rag.Row"}, "message_schema_type"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings: dict[str, str], wrong: str) -> None:
    with pytest.raises(ValidationError) as raised:
        SchemaRegistryChoice.model_validate(settings)
    faults = raised.value.errors(include_input=False)
    assert {fault["loc"][0] for fault in faults} == {wrong}
    assert "secret-word" not in str(faults)


def test_a_file_of_protobuf_needs_the_name_of_a_message(proto: Path) -> None:
    with pytest.raises(ValidationError):
        SchemaRegistryChoice.model_validate({"message_schema_file": proto})
    chosen = {"message_schema_file": proto, "message_schema_type": "rag.Row"}
    assert SchemaRegistryChoice.model_validate(chosen).message_schema_type == "rag.Row"


@pytest.mark.parametrize(
    "url", ["http://registry:8081", "https://registry/apis/ccompat/v7", "http://127.0.0.1:8081", ""]
)
def test_a_registry_may_be_plain_where_nobody_logs_in(url: str) -> None:
    found = SchemaRegistryChoice.model_validate({"schema_registry_url": url}).schema_registry_url
    assert (None if found is None else found.get_secret_value()) == (url or None)
