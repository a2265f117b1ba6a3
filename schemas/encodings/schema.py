"""Schemas of binary encodings: what names one in a message, what one is, and where one is had."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from schemas.errors import UnusablePayload
from schemas.reject_reason import RejectReason

FILE_MAGIC = b"Obj\x01"
"""What a file of Avro begins with, which has its schema in itself."""


class SchemaKind(StrEnum):
    """What a schema is written in, and with that what a value is encoded in."""

    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON = "json"


class KeyKind(StrEnum):
    """Whose id it is: Confluent's registry and those that keep to its interface give numbers, or GUIDs.

    Apicurio also counts in two ways of its own, with ids of eight bytes, and AWS Glue has UUIDs of versions.
    """

    ID = "id"
    GUID = "guid"
    GLOBAL_ID = "global id"
    CONTENT_ID = "content id"
    GLUE = "aws glue id"


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """What a message names its schema by: a number, or a GUID with its hyphens."""

    kind: KeyKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema. Those that it refers to come first; ``name`` is what it is imported by, where that is needed.

    ``text`` is JSON for Avro. For Protobuf it is a .proto file, or its FileDescriptorProto in base64.
    ``message`` is the full name of the message of Protobuf that a value without a frame holds.
    """

    kind: SchemaKind
    text: str
    references: tuple[Schema, ...] = ()
    name: str = ""
    message: str = ""


class SchemaSource(Protocol):
    """A registry of schemas."""

    def look_up(self, key: SchemaKey) -> Schema | None:
        """Return the schema, or None if the registry knows none by this key, which is for ever.

        What may pass (no answer, a refusal of who asks) is raised as what it is: the message waits.
        """


@dataclass(frozen=True, slots=True)
class Schemas:
    """What is known of a topic's schemas: the registry that its messages name theirs by, and that of values as such."""

    source: SchemaSource | None = None
    plain: Schema | None = None

    def of(self, key: SchemaKey) -> Schema:
        """Return the schema that a message names.

        Raises UnusablePayload (unsupported_encoding without a registry, unknown_schema), and what the source raises.
        """
        if self.source is None:
            rule = "its schema is in a registry; set GASP_SCHEMA_REGISTRY_URL"
            raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, f"{key}: {rule}")
        found = self.source.look_up(key)
        if found is None:
            raise UnusablePayload(RejectReason.UNKNOWN_SCHEMA, f"{key}: the registry knows no such schema")
        return found


NO_SCHEMAS = Schemas()


def unusable_schema(kind: SchemaKind, why: str) -> UnusablePayload:
    """Return the refusal of a message whose schema cannot be used. ``why`` quotes neither schema nor message."""
    return UnusablePayload(RejectReason.UNKNOWN_SCHEMA, f"{kind}: its schema cannot be used: {why}")


def invalid_encoding(kind: SchemaKind, why: str) -> UnusablePayload:
    """Return the refusal of a value that is not what its schema says."""
    return UnusablePayload(RejectReason.INVALID_ENCODING, f"{kind}: {why}")
