"""Whether a schema can be used, before any value comes."""

from __future__ import annotations

from schemas.encodings.schema import Schema, SchemaKind


def require_usable(schema: Schema) -> None:
    """Raises UnusablePayload (unknown_schema) for a schema that is none, or lacks its message."""
    # Their packages belong to an extra, and take longer to import than most commands to run.
    from schemas.encodings.avro import require_avro
    from schemas.encodings.protobuf import require_protobuf

    if schema.kind is SchemaKind.AVRO:
        require_avro(schema)
    if schema.kind is SchemaKind.PROTOBUF:
        require_protobuf(schema)
