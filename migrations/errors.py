"""What a migration raises."""

from __future__ import annotations


class MigrationError(Exception):
    """The database could not be brought to the wanted revision. It is unchanged: a migration is one transaction."""
