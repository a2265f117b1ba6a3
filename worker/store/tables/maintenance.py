"""What the maintenance of the database keeps of itself."""

from __future__ import annotations

from sqlalchemy import Column, Identity, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint, func

from worker.store.tables.metadata import METADATA, TIME

# Written by the migrations alone.
schema_revisions = Table(
    "schema_revisions",
    METADATA,
    Column("revision", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("completes", Text),
    Column("applied_at", TIME, nullable=False, server_default=func.now()),
)

job_runs = Table(
    "job_runs",
    METADATA,
    Column("job", Text),
    Column("scheduled_for", TIME),
    Column("owner", Text, nullable=False),
    Column("started_at", TIME, nullable=False, server_default=func.now()),
    Column("finished_at", TIME),
    Column("outcome", Text, nullable=False, server_default="running"),
    Column("detail", Text),
    PrimaryKeyConstraint("job", "scheduled_for"),
)

retention_periods = Table(
    "retention_periods",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("keep_days", Integer),
    Column("updated_at", TIME, nullable=False, server_default=func.now()),
    UniqueConstraint("app", name="uq_retention_periods_app", postgresql_nulls_not_distinct=True),
)
