"""Workers that are broken on purpose, to show that the checker sees it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, update

from worker.broker.source import RecordSource
from worker.ingest.dead_letters import DeadLetters, Form
from worker.jobs.schedule import utc_now
from worker.rules.pieces import TracePolicy
from worker.rules.settlement import Advance, Outcome, Settled, Settlement
from worker.store import offsets
from worker.store import settlements as settling
from worker.store.job_runs import JobRuns
from worker.store.settlements import Settlements
from worker.store.tables import partition_offsets


class Sabotage(StrEnum):
    """Which promise is broken."""

    NONE = "none"
    FENCE = "fence"  # a step is taken whoever owns the partition and wherever it stands
    COMMIT_FIRST = "commit-first"  # the offset moves in a transaction of its own, before anything is stored
    SWALLOW = "swallow"  # poison leaves neither a ledger row nor a dead letter
    STAY = "stay"  # a position stays behind the last record, in front of the end of a transaction
    OWN_CLOCK = "own-clock"  # what is due goes by the worker's own clock


def sabotage(kind: Sabotage) -> None:
    """Break this process."""
    if kind is Sabotage.FENCE:
        offsets._advance = _advance_blindly
    elif kind is Sabotage.COMMIT_FIRST:
        _commit_offsets_first()
    elif kind is Sabotage.SWALLOW:
        _swallow_poison()
    elif kind is Sabotage.STAY:
        RecordSource.position = lambda *_: None  # type: ignore[method-assign]  # the point is to replace it
    elif kind is Sabotage.OWN_CLOCK:
        JobRuns.now = lambda _: utc_now()  # type: ignore[method-assign]  # as above


def _advance_blindly(connection: Connection, advance: Advance, broker_time: datetime | None) -> bool:  # noqa: ARG001 - as the one it replaces
    place = partition_offsets.c
    step = update(partition_offsets).where(place.topic == advance.topic, place.partition == advance.partition)
    connection.execute(step.values(next_offset=advance.next_offset, generation=advance.generation, owner=advance.owner))
    return True


def _commit_offsets_first() -> None:
    original = Settlements.settle

    def settle(
        self: Settlements,
        scorer_id: int,
        settlements: Sequence[Settlement],
        advances: Sequence[Advance],
        traces: TracePolicy = TracePolicy(),  # noqa: B008 - frozen
    ) -> Settled:
        fenced = self.database.write(lambda connection: offsets.advance_all(connection, advances, {}))
        kept = [one for one in settlements if (one.record.topic, one.record.partition) not in fenced]
        settled = original(self, scorer_id, kept, advances, traces)
        return Settled(settled.counts, tuple(sorted(fenced)))

    settling.advance_all = lambda *_: set()  # type: ignore[attr-defined]  # the name under which it is called
    Settlements.settle = settle  # type: ignore[method-assign]  # the point is to replace it


def _swallow_poison() -> None:
    original = Settlements.settle

    def settle(
        self: Settlements,
        scorer_id: int,
        settlements: Sequence[Settlement],
        advances: Sequence[Advance],
        traces: TracePolicy = TracePolicy(),  # noqa: B008 - frozen
    ) -> Settled:
        kept = [one for one in settlements if one.outcome is not Outcome.DEAD_LETTERED]
        return original(self, scorer_id, kept, advances, traces)

    def send(self: DeadLetters, settlements: Sequence[Settlement], first: Form = Form.WHOLE) -> None:
        """Send nothing."""

    Settlements.settle = settle  # type: ignore[method-assign]  # the point is to replace it
    DeadLetters.send = send  # type: ignore[method-assign]  # as above
