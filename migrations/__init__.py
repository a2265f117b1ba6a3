"""The Alembic migrations of the audit database."""
