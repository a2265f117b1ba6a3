"""Scorers, their thresholds, and what these were learned from."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from worker.store.tables.metadata import METADATA, TIME

scorers = Table(
    "scorers",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("model", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("dtype", Text, nullable=False),
    Column("template", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    UniqueConstraint("model", "revision", "dtype", "template", "method", name="uq_scorers_identity"),
)

thresholds = Table(
    "thresholds",
    METADATA,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("flag_below", Double, nullable=False),
    Column("attribute_below", Double, nullable=False),
    Column("learned_from", Text, nullable=False),
    Column("note", Text),
    Column("created_at", TIME, nullable=False, server_default=func.now()),
    Column("activated_at", TIME),
    Column("is_active", Boolean, nullable=False, server_default=text("false")),
    Column("curve", JSONB),
    # What it adds to the detector's score before it judges; NULL if nothing.
    Column("correction", JSONB(none_as_null=True)),
    UniqueConstraint("app", "scorer_id", "version", postgresql_nulls_not_distinct=True),
)
Index(
    "uq_thresholds_active",
    thresholds.c.app,
    thresholds.c.scorer_id,
    unique=True,
    postgresql_nulls_not_distinct=True,
    postgresql_where=thresholds.c.is_active,
)

threshold_activations = Table(
    "threshold_activations",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("threshold_id", Integer, ForeignKey("thresholds.id"), nullable=False),
    Column("activated_at", TIME, nullable=False, server_default=func.now()),
    Column("activated_by", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

calibration_runs = Table(
    "calibration_runs",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("app", Text),
    Column("scorer_id", Integer, ForeignKey("scorers.id"), nullable=False),
    Column("ran_at", TIME, nullable=False, server_default=func.now()),
    Column("trigger", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("in_force_id", Integer, ForeignKey("thresholds.id"), nullable=False),
    Column("threshold_id", Integer, ForeignKey("thresholds.id")),
    Column("numbers", JSONB, nullable=False),
)
Index(None, calibration_runs.c.ran_at)
