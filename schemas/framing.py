"""The bytes that a schema registry's serialiser puts in front of the payload, and payloads that are no JSON at all."""

from __future__ import annotations

import re

from schemas.encodings.multipart import multipart_as_json
from schemas.errors import UnusablePayload
from schemas.payload import Parsed, parse_json
from schemas.reject_reason import RejectReason

# Prefix and length of the whole frame. No JSON text begins with one of the prefixes.
_FRAMES = {
    b"\x00": 5,  # Confluent: 0x00, schema id of four bytes
    b"\x01": 17,  # Confluent: 0x01, schema GUID of sixteen bytes
    b"\x03\x00": 18,  # AWS Glue: version, no compression, schema id of sixteen bytes
}

# An Avro file, a Parquet file; or, unless it begins as JSON or UTF-16 does, a control character near the beginning.
_BINARY = re.compile(
    rb"Obj\x01|PAR1|(?![\t\n\r ]*[{\[\x22]|\xff\xfe|\xfe\xff)[^\x00]{0,256}?[\x00-\x08\x0b\x0c\x0e-\x1f]", re.DOTALL
)

# Behind a frame, Avro and Protobuf may begin with any byte but hardly with a bracket.
_FRAMED_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\r ]*(?:[\[{]|$)")


def parse_framed(value: bytes, *, spelled: bool = False) -> Parsed:
    """Take a schema registry's frame off, if there is one, and parse the JSON behind it, OTLP in protobuf or multipart.

    Raises UnusablePayload as ``parse_json`` and ``multipart_as_json`` do, and unsupported_encoding for what is visibly
    another encoding.
    """
    payload = _without_frame(value)
    payload = multipart_as_json(payload) or payload
    try:
        return parse_json(payload, spelled=spelled)
    except UnusablePayload:
        transcoded = _otlp(payload)
        if transcoded is not None:
            return parse_json(transcoded, spelled=spelled)
        is_json = _FRAMED_JSON.match(payload) if payload is not value else not _BINARY.match(payload)
        if is_json:
            raise
        raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, "neither JSON nor JSON in a known frame") from None


def _otlp(payload: bytes) -> bytes | None:
    # Its packages belong to an extra, and take longer to import than most commands to run.
    from schemas.encodings.otlp import otlp_as_json

    return otlp_as_json(payload)


def _without_frame(value: bytes) -> bytes:
    length = next((length for prefix, length in _FRAMES.items() if value.startswith(prefix)), 0)
    return value[length:] if 0 < length <= len(value) else value
