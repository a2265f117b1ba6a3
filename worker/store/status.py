"""Questions about the state of the work and of the database itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, text

from worker.rules.settlement import Outcome
from worker.store.tables import ledger, partition_offsets


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """How far a partition is. ``end_offset`` is the one seen at the last step, None if none was told."""

    topic: str
    partition: int
    next_offset: int
    end_offset: int | None
    owner: str
    generation: int
    last_broker_time: datetime | None
    updated_at: datetime

    @property
    def lag(self) -> int | None:
        """Records that were not yet settled at the last step."""
        return None if self.end_offset is None else max(self.end_offset - self.next_offset, 0)


def partition_statuses(connection: Connection) -> tuple[PartitionStatus, ...]:
    """Every partition that has begun, by topic and number."""
    names = (
        "topic",
        "partition",
        "next_offset",
        "end_offset",
        "owner",
        "generation",
        "last_broker_time",
        "updated_at",
    )
    found = select(*(partition_offsets.c[name] for name in names)).order_by("topic", "partition")
    return tuple(PartitionStatus(**row._asdict()) for row in connection.execute(found))


def outcome_counts(connection: Connection) -> dict[tuple[Outcome, str | None], int]:
    """The ledger, counted by outcome and reason."""
    counted = select(ledger.c.outcome, ledger.c.reason, func.count()).group_by(ledger.c.outcome, ledger.c.reason)
    return {(Outcome(outcome), reason): count for outcome, reason, count in connection.execute(counted)}


def server_version(connection: Connection) -> str:
    """Such as ``18.6``."""
    return str(connection.scalar(text("SHOW server_version"))).split(" ", 1)[0]


def schema_revision(connection: Connection) -> str | None:
    """The revision the database was migrated to, or None if it never was."""
    if connection.scalar(select(func.to_regclass("alembic_version"))) is None:
        return None
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if revision is None else str(revision)
