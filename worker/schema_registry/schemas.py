"""The schemas that the settings name, opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from schemas.encodings.schema import Schemas
from worker.schema_registry.cache import CachedSchemas
from worker.settings.schema_registry import SchemaRegistryChoice


@contextmanager
def opened_schemas(choice: SchemaRegistryChoice) -> Iterator[Schemas]:
    """What is known of the schemas of messages; without a registry and a file that is nothing.

    Looking up raises SchemasUnavailable, which passes, and SettingsError. Raises SettingsError for a file that is no
    schema.
    """
    plain = None
    if choice.message_schema_file is not None:
        # Protobuf's package takes long to import, and most do without.
        from worker.schema_registry.schema_file import read_schema_file

        plain = read_schema_file(choice.message_schema_file, choice.message_schema_type)
    if choice.schema_registry_url is None:
        yield Schemas(plain=plain)
        return
    from worker.schema_registry.registry import SchemaRegistry

    with closing(SchemaRegistry(choice)) as registry:
        yield Schemas(CachedSchemas(registry), plain)
