"""Recalibrations: a row for every outcome, together with the version that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, func, insert, select

from worker.store.repository import Repository, reads, writes
from worker.store.tables import calibration_runs
from worker.store.threshold_versions import Proposal, Version, put_in_place_of

COUNTED_DAYS = 7
OVERTAKEN = "overtaken"

_ACTIVATED_BY = "recalibration"

_runs = calibration_runs.c


@dataclass(frozen=True, slots=True)
class CalibrationRun:
    """What a recalibration came to for one app (None: the default) under one scorer.

    ``trigger`` is schedule or command, ``outcome`` new, unchanged or refused. ``in_force_id`` is the version that was
    in force when the labels were read. ``numbers`` is flat and JSON.
    """

    app: str | None
    scorer_id: int
    trigger: str
    outcome: str
    reason: str
    in_force_id: int
    numbers: Mapping[str, float | int | str | None]


class CalibrationRuns(Repository):
    """What each recalibration came to."""

    @writes
    def book(self, connection: Connection, run: CalibrationRun, proposal: Proposal | None) -> Version | None:
        """Enter the run, and with a proposal (outcome new) add its version and put it in force; return that version.

        If another version came into force since the labels were read, the proposal is not stored, and the run is
        entered as refused for that reason (OVERTAKEN).
        """
        if proposal is None:
            _enter(connection, run, run.outcome, run.reason, None)
            return None
        added = put_in_place_of(connection, run.in_force_id, proposal, _ACTIVATED_BY, "calibrated")
        if added is None:
            _enter(connection, run, "refused", OVERTAKEN, None)
        else:
            _enter(connection, run, run.outcome, run.reason, added.id)
        return added

    @reads
    def counts(self, connection: Connection) -> dict[tuple[str, str], int]:
        """The runs of the last seven days by outcome and reason."""
        found = (
            select(_runs.outcome, _runs.reason, func.count().label("runs"))
            .where(_runs.ran_at >= func.now() - timedelta(days=COUNTED_DAYS))
            .group_by(_runs.outcome, _runs.reason)
        )
        return {(row.outcome, row.reason): row.runs for row in connection.execute(found)}


def _enter(connection: Connection, run: CalibrationRun, outcome: str, reason: str, threshold_id: int | None) -> None:
    connection.execute(
        insert(calibration_runs).values(
            app=run.app,
            scorer_id=run.scorer_id,
            trigger=run.trigger,
            outcome=outcome,
            reason=reason,
            in_force_id=run.in_force_id,
            threshold_id=threshold_id,
            numbers=dict(run.numbers),
        )
    )
