"""Threshold versions: rows are only ever added, and at most one per app and scorer is active."""

from __future__ import annotations

from sqlalchemy import Connection, exists, func, literal, null, select
from sqlalchemy.dialects import postgresql

from worker.judge import Threshold
from worker.store.tables import thresholds


def ensure_default_threshold(
    connection: Connection, scorer_id: int, *, flag_below: float, attribute_below: float, note: str
) -> None:
    """Seed version 1 for every app, active, unless the scorer has a default of any version already."""
    has_default = exists().where(thresholds.c.app.is_(None), thresholds.c.scorer_id == scorer_id)
    values = {
        "app": null(),
        "scorer_id": literal(scorer_id),
        "version": literal(1),
        "flag_below": literal(flag_below),
        "attribute_below": literal(attribute_below),
        "learned_from": literal("seeded"),
        "note": literal(note),
        "activated_at": func.now(),
        "is_active": literal(value=True),
    }
    seed = postgresql.insert(thresholds).from_select(list(values), select(*values.values()).where(~has_default))
    # Two workers that start at once both find none; the unique keys let one of them in.
    connection.execute(seed.on_conflict_do_nothing())


def active_thresholds(connection: Connection, scorer_id: int) -> dict[str | None, Threshold]:
    """The threshold in force per app; the key None is the default for every other app."""
    names = ("id", "app", "version", "flag_below", "attribute_below", "learned_from", "activated_at")
    found = select(*(thresholds.c[name] for name in names)).where(
        thresholds.c.scorer_id == scorer_id, thresholds.c.is_active
    )
    return {row.app: Threshold(**row._asdict()) for row in connection.execute(found)}
