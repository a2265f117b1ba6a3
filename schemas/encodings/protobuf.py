"""Protobuf, written again as JSON, by descriptors that come from a registry or a file.

Names are those of the .proto file. Whole numbers stay numbers, times are ISO 8601, enumerations their names, bytes the
text that they are or base64. A number or truth value that is not there is left out; a text or list is empty then.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import orjson
from pydantic import JsonValue

from schemas.encodings.logical import iso_time, shortest_float, text_of_bytes
from schemas.encodings.proto_text import NotProto, file_of_text
from schemas.encodings.schema import Schema, SchemaKind, invalid_encoding, unusable_schema
from schemas.errors import UnusablePayload
from schemas.payload import MAX_DEPTH
from schemas.reject_reason import RejectReason

if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

MAX_VALUES = 1_000_000

_WELL_KNOWN = "google/protobuf/"
_MAX_INDEXES = 30
_ROOT = "schema.proto"
_MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class _Messages:
    """The messages of a schema: the file that was asked for, and the pool that knows it with all that it imports."""

    file: FileDescriptorProto
    pool: DescriptorPool

    def at(self, indexes: Sequence[int]) -> str:
        """The full name of the message at a path of positions. Raises UnusablePayload (invalid_encoding)."""
        names, level = [self.file.package] if self.file.package else [], self.file.message_type
        for index in indexes:
            if not 0 <= index < len(level):
                raise invalid_encoding(SchemaKind.PROTOBUF, "a message that the schema has not")
            names.append(level[index].name)
            level = level[index].nested_type
        return ".".join(names)

    def only(self) -> str:
        """The one message that there is. Raises UnusablePayload (invalid_encoding) if there are others."""
        if len(self.file.message_type) != 1:
            raise invalid_encoding(SchemaKind.PROTOBUF, "which message of its schema it is, is not said")
        return self.in_package(self.file.message_type[0].name)

    def in_package(self, name: str) -> str:
        """The full name of a message."""
        return f"{self.file.package}.{name}" if self.file.package else name

    def new(self, name: str) -> Message:
        """An empty message. Raises UnusablePayload (unknown_schema) for a name that is none."""
        from google.protobuf import message_factory

        try:
            return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))()
        except KeyError:
            raise unusable_schema(SchemaKind.PROTOBUF, "it has no message of that name") from None


def protobuf_as_json(value: bytes, schema: Schema, named_by: bytes | None = None) -> bytes:
    """Return a message as JSON.

    Which of the schema's messages it is says what stands in front of it, or ``named_by`` in its stead: Confluent's
    positions in the file, or Apicurio's name. An empty one says nothing, and the schema must have a single message.
    For a schema with a ``message`` it is that one, and nothing is in front.
    Raises UnusablePayload: unknown_schema for a schema that cannot be used, invalid_encoding, too_deep, too_large for
    too many values, non_finite_number.
    """
    messages = _messages(schema)
    if schema.message:
        name = schema.message
    elif named_by == b"":
        name = messages.only()
    else:
        name, end = _named(messages, value if named_by is None else named_by)
        value = value[end:] if named_by is None else value
    return orjson.dumps(_Writer(messages).message(_parsed(messages.new(name), value), 0))


def require_protobuf(schema: Schema) -> None:
    """Raises UnusablePayload (unknown_schema) for a schema that is none, or has no ``message`` of that name."""
    messages = _messages(schema)
    if schema.message:
        messages.new(schema.message)


def _named(messages: _Messages, front: bytes) -> tuple[str, int]:
    """The full name of the message that is named in front of one, and where that ends."""
    try:
        path, end = _indexes(front)
        return messages.at(path), end
    except UnusablePayload:
        name, end = _reference(front)
        if name not in (one.name for one in messages.file.message_type):
            raise
        return messages.in_package(name), end


def _reference(front: bytes) -> tuple[str, int]:
    """Apicurio's name in front: a length, and a message whose first field is the name; "" if it is none."""
    length = front[0] if front else 0
    if len(front) > length > 2 and front[1:3] == bytes((0x0A, length - 2)):
        return front[3 : length + 1].decode(errors="replace"), length + 1
    return "", 0


def _parsed(message: Message, value: bytes) -> Message:
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(value)
    except DecodeError:
        raise invalid_encoding(SchemaKind.PROTOBUF, "not the message of its schema, or nested too deep") from None
    return message


def _indexes(value: bytes) -> tuple[list[int], int]:
    """Positions as a count and so many numbers, signs last; a count of nought is the first message."""
    count, at = _number(value, 0)
    if not 0 <= count <= _MAX_INDEXES:
        raise invalid_encoding(SchemaKind.PROTOBUF, "no positions of a message in front")
    found: list[int] = []
    for _ in range(count):
        index, at = _number(value, at)
        found.append(index)
    return found or [0], at


def _number(value: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place, byte in enumerate(value[at : at + 5]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise invalid_encoding(SchemaKind.PROTOBUF, "no positions of a message in front")


@lru_cache(maxsize=64)
def _messages(schema: Schema) -> _Messages:
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    try:
        root = _file(schema, _ROOT)
        _Importer(pool, {one.name: one for one in schema.references}).add(root)
    except (NotProto, TypeError, ValueError, binascii.Error):
        raise unusable_schema(SchemaKind.PROTOBUF, "it is no schema, or imports one that is not there") from None
    return _Messages(root, pool)


def _file(schema: Schema, name: str) -> FileDescriptorProto:
    """The descriptor that a schema is, or is the text of. Raises NotProto."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        written = base64.b64decode(schema.text, validate=True)
    except binascii.Error:
        return file_of_text(schema.text, name)
    try:
        found = FileDescriptorProto.FromString(written)
    except DecodeError as error:
        raise NotProto("no descriptor") from error
    # Under the name by which others import it.
    found.name = name
    return found


class _Importer:
    """Adds files to a pool, those that they import first."""

    def __init__(self, pool: DescriptorPool, references: dict[str, Schema]) -> None:
        self._pool = pool
        self._references = dict(references)
        self._seen: set[str] = set()

    def add(self, file: FileDescriptorProto) -> None:
        """Raises TypeError for types that are not there, and NotProto."""
        self._seen.add(file.name)
        if len(self._seen) > _MAX_FILES:
            raise NotProto("too many imports")
        for name in file.dependency:
            if name not in self._seen:
                self.add(self._import(name))
        self._pool.AddSerializedFile(file.SerializeToString())

    def _import(self, name: str) -> FileDescriptorProto:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        if name in self._references:
            schema = self._references[name]
            self._references |= {one.name: one for one in schema.references if one.name not in self._references}
            return _file(schema, name)
        if name.startswith(_WELL_KNOWN):
            return _well_known(name)
        # A file that has options alone, such as rules for validation, takes nothing away.
        return FileDescriptorProto(name=name)


def _well_known(name: str) -> FileDescriptorProto:
    """A file that Protobuf brings along. Raises NotProto."""
    from google.protobuf import (  # noqa: F401 - importing makes them known
        any_pb2,
        api_pb2,
        descriptor_pool,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        source_context_pb2,
        struct_pb2,
        timestamp_pb2,
        type_pb2,
        wrappers_pb2,
    )
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        found = descriptor_pool.Default().FindFileByName(name)
    except KeyError as error:
        raise NotProto("an import that is not there") from error
    return FileDescriptorProto.FromString(found.serialized_pb)


@dataclass(frozen=True, slots=True)
class _Field:
    """What writing needs to know of a field, which takes long to ask for each value."""

    name: str
    is_repeated: bool
    has_presence: bool
    is_text: bool
    is_message: bool
    is_short_float: bool
    symbols: dict[int, str] | None
    # Of a map, that of its values.
    values: _Field | None

    @classmethod
    def of(cls, field: FieldDescriptor) -> _Field:
        """The field as its descriptor says."""
        inner, enum = field.message_type, field.enum_type
        is_map = inner is not None and inner.GetOptions().map_entry
        return cls(
            name=field.name,
            is_repeated=field.is_repeated,
            has_presence=field.has_presence,
            is_text=field.type == field.TYPE_STRING,
            is_message=inner is not None,
            is_short_float=field.cpp_type == field.CPPTYPE_FLOAT,
            symbols=None if enum is None else {one.number: one.name for one in reversed(enum.values)},
            values=cls.of(inner.fields_by_name["value"]) if inner is not None and is_map else None,
        )

    def is_in(self, message: Message) -> bool:
        """Whether it is there; a text or list that may not be absent is there, if only as an empty one."""
        if self.is_repeated:
            return True
        if self.has_presence:
            return message.HasField(self.name)
        return self.is_text or bool(getattr(message, self.name))


class _Writer:
    """Writes messages as JSON values, within bounds on depth and number."""

    def __init__(self, messages: _Messages) -> None:
        self._messages = messages
        self._left = MAX_VALUES
        self._fields: dict[str, tuple[_Field, ...]] = {}

    def message(self, message: Message, depth: int) -> JsonValue:
        """Raises UnusablePayload (too_deep, too_large, non_finite_number)."""
        if depth > MAX_DEPTH:
            raise UnusablePayload(RejectReason.TOO_DEEP, f"protobuf: nested deeper than {MAX_DEPTH}")
        name = message.DESCRIPTOR.full_name
        if name in _SPECIAL:
            return _SPECIAL[name](self, message, depth)
        if name not in self._fields:
            described = cast("Sequence[FieldDescriptor]", message.DESCRIPTOR.fields)
            self._fields[name] = tuple(map(_Field.of, described))
        fields = (field for field in self._fields[name] if field.is_in(message))
        return {field.name: self._field(getattr(message, field.name), field, depth) for field in fields}

    def _field(self, value: Any, field: _Field, depth: int) -> JsonValue:  # noqa: ANN401 - of any field
        if field.values is not None:
            return {_key(key): self._value(value[key], field.values, depth) for key in value}
        if field.is_repeated:
            return [self._value(one, field, depth) for one in value]
        return self._value(value, field, depth)

    def _value(self, value: Any, field: _Field, depth: int) -> JsonValue:  # noqa: ANN401 - as above
        self._count()
        if field.is_message:
            return self.message(value, depth + 1)
        if field.symbols is not None:
            return field.symbols.get(value, int(value))
        if isinstance(value, bytes):
            return text_of_bytes(value)
        if isinstance(value, float):
            return _finite(shortest_float(value) if field.is_short_float else value)
        plain: JsonValue = value
        return plain

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnusablePayload(RejectReason.TOO_LARGE, f"protobuf: more than {MAX_VALUES} values")

    def any(self, message: Any, depth: int) -> JsonValue:  # noqa: ANN401 - a message without stubs
        """A message of a type that it names: as that, if the schema has it."""
        name = message.type_url.rpartition("/")[2]
        try:
            self._messages.pool.FindMessageTypeByName(name)
        except KeyError:
            return {"@type": message.type_url, "value": base64.b64encode(message.value).decode()}
        inner = self.message(_parsed(self._messages.new(name), message.value), depth + 1)
        return {"@type": message.type_url, **(inner if isinstance(inner, dict) else {"value": inner})}

    def struct(self, message: Any, depth: int) -> JsonValue:  # noqa: ANN401 - as above
        """A JSON object."""
        return {key: self.message(message.fields[key], depth + 1) for key in message.fields}

    def list(self, message: Any, depth: int) -> JsonValue:  # noqa: ANN401 - as above
        """A JSON array."""
        return [self.message(one, depth + 1) for one in message.values]

    def json_value(self, message: Any, depth: int) -> JsonValue:  # noqa: ANN401 - as above
        """Any JSON value."""
        self._count()
        kind = message.WhichOneof("kind")
        if kind in ("struct_value", "list_value"):
            return self.message(getattr(message, kind), depth + 1)
        if kind == "number_value":
            return _finite(message.number_value)
        return None if kind in (None, "null_value") else cast("JsonValue", getattr(message, kind))

    def wrapped(self, message: Any, depth: int) -> JsonValue:  # noqa: ANN401 - as above
        """A single value that may be absent."""
        (field,) = cast("Sequence[FieldDescriptor]", message.DESCRIPTOR.fields)
        return self._value(message.value, _Field.of(field), depth)


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise UnusablePayload(RejectReason.NON_FINITE_NUMBER, "protobuf: a number that is not finite")
    return number


def _timestamp(_: _Writer, message: Any, __: int) -> JsonValue:  # noqa: ANN401 - as above
    try:
        return iso_time(message.seconds, message.nanos)
    except (OverflowError, ValueError):
        return {"seconds": message.seconds, "nanos": message.nanos}


def _duration(_: _Writer, message: Any, __: int) -> JsonValue:  # noqa: ANN401 - as above
    return {"seconds": message.seconds, "nanos": message.nanos}


_SPECIAL: dict[str, Callable[[_Writer, Any, int], JsonValue]] = {
    "google.protobuf.Any": _Writer.any,
    "google.protobuf.Struct": _Writer.struct,
    "google.protobuf.ListValue": _Writer.list,
    "google.protobuf.Value": _Writer.json_value,
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    **{
        f"google.protobuf.{kind}Value": _Writer.wrapped
        for kind in ("Bool", "String", "Bytes", "Int32", "Int64", "UInt32", "UInt64", "Float", "Double")
    },
}
