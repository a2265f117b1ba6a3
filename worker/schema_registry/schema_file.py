"""The schema of values that name none, from a file: Avro's JSON, a .proto file, or a set of descriptors."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from schemas.encodings.proto_text import NotProto, file_of_text
from schemas.encodings.schema import Schema, SchemaKind
from schemas.encodings.usable import require_usable
from schemas.errors import UnusablePayload
from worker.errors import SettingsError
from worker.settings.schema_registry import AVRO_SUFFIXES, PROTO_SUFFIX

MAX_FILES = 100


def read_schema_file(path: Path, message: str | None) -> Schema:
    """The schema; ``message`` is the full name of Protobuf's message. Raises SettingsError if it cannot be used."""
    try:
        schema = _read(path, message or "")
        require_usable(schema)
    except (OSError, UnicodeDecodeError, DecodeError, NotProto, UnusablePayload) as error:
        told = error.detail if isinstance(error, UnusablePayload) else type(error).__name__
        names = "GASP_MESSAGE_SCHEMA_FILE and GASP_MESSAGE_SCHEMA_TYPE" if message else "GASP_MESSAGE_SCHEMA_FILE"
        raise SettingsError(f"{names}: no schema that can be used ({told})") from None
    return schema


def _read(path: Path, message: str) -> Schema:
    if path.suffix in AVRO_SUFFIXES:
        return Schema(SchemaKind.AVRO, path.read_text("utf-8"))
    if path.suffix == PROTO_SUFFIX:
        text = path.read_text("utf-8")
        return Schema(SchemaKind.PROTOBUF, text, _beside(path.parent, text, {}), message=message)
    return _of_set(FileDescriptorSet.FromString(path.read_bytes()), message)


def _beside(folder: Path, text: str, found: dict[str, Schema]) -> tuple[Schema, ...]:
    """The files that a .proto file imports and that lie in its folder, and what these import."""
    for name in file_of_text(text, "schema.proto").dependency:
        file = folder / name
        if name not in found and len(found) < MAX_FILES and file.is_file():
            found[name] = Schema(SchemaKind.PROTOBUF, file.read_text("utf-8"), name=name)
            _beside(folder, found[name].text, found)
    return tuple(found.values())


def _of_set(files: FileDescriptorSet, message: str) -> Schema:
    """The file of a set that has the message, with the others. Raises NotProto if none has."""
    root = next((file for file in files.file if any(_is_in(message, name) for name in _names(file))), None)
    if root is None:
        raise NotProto("a set without the message")
    references = (
        Schema(SchemaKind.PROTOBUF, _base64(file), name=file.name)
        for file in files.file
        if file is not root and not file.name.startswith("google/protobuf/")
    )
    return Schema(SchemaKind.PROTOBUF, _base64(root), tuple(references), message=message)


def _names(file: FileDescriptorProto) -> Iterator[str]:
    for message in file.message_type:
        yield f"{file.package}.{message.name}".lstrip(".")


def _is_in(message: str, name: str) -> bool:
    """Whether it is the message of that name, or lies in it."""
    return message == name or message.startswith(f"{name}.")


def _base64(file: FileDescriptorProto) -> str:
    return base64.b64encode(file.SerializeToString()).decode()
