"""The bytes that a schema registry's serialiser puts in front of the payload, and payloads that are no JSON at all."""

from __future__ import annotations

import re

from schemas.errors import UnusablePayload
from schemas.payload import Parsed, parse_json
from schemas.reject_reason import RejectReason

# Prefix and length of the whole frame. No JSON text begins with one of the prefixes.
_FRAMES = {
    b"\x00": 5,  # Confluent: 0x00, schema id of four bytes
    b"\x01": 17,  # Confluent: 0x01, schema GUID of sixteen bytes
    b"\x03\x00": 18,  # AWS Glue: version, no compression, schema id of sixteen bytes
}

# gzip, Zstandard, an Avro file, a Parquet file; or a control character that is not JSON's white space.
_BINARY = re.compile(rb"\x1f\x8b|\x28\xb5\x2f\xfd|Obj\x01|PAR1|[\x00-\x08\x0b\x0c\x0e-\x1f]")

# Behind a frame, Avro and Protobuf may begin with any byte but hardly with a brace.
_FRAMED_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\r ]*(?:\{|$)")


def parse_framed(value: bytes, *, spelled: bool = False) -> Parsed:
    """Take a schema registry's frame off, if there is one, and parse the JSON behind it, or OTLP in protobuf.

    Raises UnusablePayload as ``parse_json`` does, and unsupported_encoding for what is visibly another encoding.
    """
    payload = _without_frame(value)
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
