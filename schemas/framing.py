"""The bytes that a schema registry's serialiser puts in front of the payload, and payloads that are no JSON at all."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from schemas.encodings.compression import inflated
from schemas.encodings.multipart import multipart_as_json
from schemas.encodings.schema import NO_SCHEMAS, KeyKind, Schema, SchemaKey, SchemaKind, Schemas, invalid_encoding
from schemas.errors import UnusablePayload
from schemas.headers import Headers
from schemas.payload import Parsed, parse_json
from schemas.reject_reason import RejectReason

_ID_BYTES, _LONG_ID_BYTES, _GUID_BYTES = 4, 8, 16
_CONFLUENT_ID, _CONFLUENT_GUID, _GLUE = b"\x00", b"\x01", b"\x03"
_GLUE_PLAIN, _GLUE_ZLIB = b"\x00", b"\x05"
# Where the id may stand instead: Confluent's with its frame, Apicurio's as a number.
_CONFLUENT_HEADER = "__value_schema_id"
_APICURIO_HEADERS = {"apicurio.value.globalId": KeyKind.GLOBAL_ID, "apicurio.value.contentId": KeyKind.CONTENT_ID}

# An Avro file, a Parquet file; or, unless it begins as JSON or UTF-16 does, a control character near the beginning.
_BINARY = re.compile(
    rb"Obj\x01|PAR1|(?![\t\n\r ]*[{\[\x22]|\xff\xfe|\xfe\xff)[^\x00]{0,256}?[\x00-\x08\x0b\x0c\x0e-\x1f]", re.DOTALL
)

_NO_FRAME = "a value without a registry's frame needs a schema; set GASP_MESSAGE_SCHEMA_FILE"
_NO_ENCODING = "neither JSON nor another encoding that is read; plain Avro and Protobuf need GASP_MESSAGE_SCHEMA_FILE"

# Behind a frame, Avro and Protobuf may begin with any byte but hardly with a bracket.
_FRAMED_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\r ]*(?:[\[{]|$)")


@dataclass(frozen=True, slots=True)
class Frame:
    """What a value says of its schema, and what is behind it.

    ``named_by`` says which message of a schema of Protobuf it is, where that does not stand in front of the payload.
    """

    key: SchemaKey
    payload: bytes
    named_by: bytes | None = None


def frame_of(value: bytes, headers: Headers, *, max_bytes: int) -> Frame | None:
    """Return the frame of a value, from its headers or its first bytes, or None if it has none.

    No JSON text begins with one. Raises UnusablePayload as ``inflated`` does, for AWS Glue's compression.
    """
    found = _of_headers(value, headers)
    if found is not None:
        return found
    if value.startswith(_CONFLUENT_ID + bytes(_ID_BYTES)) and len(value) > _LONG_ID_BYTES:
        # No id of four bytes is nought: it is one of eight.
        number = int.from_bytes(value[1 : 1 + _LONG_ID_BYTES], "big")
        return Frame(SchemaKey(KeyKind.GLOBAL_ID, str(number)), value[1 + _LONG_ID_BYTES :])
    if value.startswith(_GLUE) and len(value) >= 2 + _GUID_BYTES:
        key, payload = SchemaKey(KeyKind.GLUE, _guid(value[2:])), value[2 + _GUID_BYTES :]
        if value[1:2] == _GLUE_ZLIB:
            return Frame(key, inflated(payload, max_bytes=max_bytes))
        return Frame(key, payload) if value[1:2] == _GLUE_PLAIN else None
    return _confluent(value)


def parse_framed(
    value: bytes,
    headers: Headers = (),
    *,
    max_bytes: int,
    schemas: Schemas = NO_SCHEMAS,
    only: SchemaKind | None = None,
    spelled: bool = False,
) -> Parsed:
    """Take a schema registry's frame off, if there is one, and parse the JSON behind it, or what is made JSON.

    That is Avro and Protobuf by the schema that the frame or ``schemas`` names, OTLP in protobuf, and multipart. With
    ``only`` it is that encoding and nothing else.
    Raises UnusablePayload: as ``parse_json`` and the encodings' readers do, as ``Schemas.of`` does, and
    unsupported_encoding for what is visibly another encoding; and what a source of schemas raises.
    """
    frame = frame_of(value, headers, max_bytes=max_bytes)
    if only is not None:
        return parse_json(_only(only, value, frame, schemas), spelled=spelled)
    payload = value if frame is None else frame.payload
    payload = multipart_as_json(payload) or payload
    try:
        return parse_json(payload, spelled=spelled)
    except UnusablePayload as fault:
        return parse_json(_transcoded(value, frame, schemas, fault), spelled=spelled)


def _only(only: SchemaKind, value: bytes, frame: Frame | None, schemas: Schemas) -> bytes:
    if frame is not None and (schemas.source is not None or schemas.plain is None):
        return _by_schema(frame.payload, schemas.of(frame.key), only, frame.named_by)
    if schemas.plain is None:
        raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, f"{only}: {_NO_FRAME}")
    return _by_schema(value, schemas.plain, only)


def _transcoded(value: bytes, frame: Frame | None, schemas: Schemas, fault: UnusablePayload) -> bytes:
    """JSON made of a value that is none; ``fault`` says why it is none, and is raised where it was meant to be some."""
    otlp = _otlp(value if frame is None else frame.payload)
    if otlp is not None:
        return otlp
    if frame is not None and (schemas.source is not None or schemas.plain is None):
        is_json = _FRAMED_JSON.match(frame.payload)
        if is_json and (schemas.source is None or not frame.payload.strip()):
            raise fault
        schema = schemas.of(frame.key)
        if schema.kind is SchemaKind.JSON:
            raise fault
        return _by_schema(frame.payload, schema, schema.kind, frame.named_by)
    is_binary = _BINARY.match(value)
    if schemas.plain is not None and value.strip():
        try:
            return _by_schema(value, schemas.plain, schemas.plain.kind)
        except UnusablePayload:
            if is_binary:
                raise
            raise fault from None
    if is_binary:
        raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, _NO_ENCODING)
    raise fault


def _by_schema(value: bytes, schema: Schema, kind: SchemaKind, named_by: bytes | None = None) -> bytes:
    # Their packages belong to an extra, and take longer to import than most commands to run.
    from schemas.encodings.avro import avro_as_json
    from schemas.encodings.protobuf import protobuf_as_json

    if schema.kind is not kind:
        raise invalid_encoding(kind, f"its schema is one of {schema.kind}")
    if kind is SchemaKind.AVRO:
        return avro_as_json(value, schema)
    return protobuf_as_json(value, schema, named_by) if kind is SchemaKind.PROTOBUF else value


def _otlp(payload: bytes) -> bytes | None:
    from schemas.encodings.otlp import otlp_as_json

    return otlp_as_json(payload)


def _of_headers(value: bytes, headers: Headers) -> Frame | None:
    for name, told in headers:
        if name == _CONFLUENT_HEADER and told:
            frame = _confluent(told)
            if frame is not None:
                return Frame(frame.key, value, frame.payload)
        if name in _APICURIO_HEADERS and told is not None and len(told) == _LONG_ID_BYTES:
            return Frame(SchemaKey(_APICURIO_HEADERS[name], str(int.from_bytes(told, "big"))), value, b"")
    return None


def _confluent(told: bytes) -> Frame | None:
    """Confluent's frame, whose end is what is behind the id."""
    if told.startswith(_CONFLUENT_ID) and len(told) > _ID_BYTES:
        number = int.from_bytes(told[1 : 1 + _ID_BYTES], "big")
        return Frame(SchemaKey(KeyKind.ID, str(number)), told[1 + _ID_BYTES :])
    if told.startswith(_CONFLUENT_GUID) and len(told) > _GUID_BYTES:
        return Frame(SchemaKey(KeyKind.GUID, _guid(told[1:])), told[1 + _GUID_BYTES :])
    return None


def _guid(told: bytes) -> str:
    return str(uuid.UUID(bytes=told[:_GUID_BYTES]))
