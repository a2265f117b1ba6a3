"""The one transaction that books a batch: offsets, interactions, verdicts, tasks, jobs and ledger, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from worker.rules.pieces import TracePolicy
from worker.rules.settlement import Advance, Settled, Settlement
from worker.store.answers import time_for, write_answers
from worker.store.ledger import Entry, write_ledger
from worker.store.offsets import PartitionKey, advance_all, count_attempt
from worker.store.repository import Repository, writes
from worker.store.revisions import keyed
from worker.store.trace_pieces import collect


class Settlements(Repository):
    """Batches of interactions, booked."""

    def settle(
        self,
        scorer_id: int,
        settlements: Sequence[Settlement],
        advances: Sequence[Advance],
        traces: TracePolicy = TracePolicy(),  # noqa: B008 - frozen
    ) -> Settled:
        """Book a batch in one transaction, with a review task for each new verdict that has a selection.

        Pieces of traces are kept, which are then due as ``traces`` says.

        The settlements of a partition that does not stand at its advance's ``expected`` are left out, and the
        partition is named in ``fenced``. Content that has its verdict already is booked as a duplicate. A record that
        was booked before is not booked or counted again. Raises ValueError for a batch that makes no sense: a
        settlement whose partition does not advance beyond it, a grounding without a verdict.
        """
        check_batch(settlements, advances)
        return self._book(scorer_id, settlements, advances, traces)

    @writes
    def begin(self, connection: Connection, advances: Sequence[Advance]) -> int:
        """Note that a batch is begun, before it can end the process; the number of this attempt.

        It is above 1 if the attempts before it ended without a single step of a partition.
        """
        return count_attempt(connection, advances)

    @writes
    def _book(
        self,
        connection: Connection,
        scorer_id: int,
        batch: Sequence[Settlement],
        advances: Sequence[Advance],
        traces: TracePolicy,
    ) -> Settled:
        """Book what belongs to partitions that are still ours; say what was booked and which partitions were not.

        The offsets come first: their rows stay locked to the end, so that a second owner of a partition waits and is
        then fenced, whatever else it wanted to write.
        """
        fenced = advance_all(connection, advances, _broker_times(batch))
        incarnations = {(advance.topic, advance.partition): advance.incarnation for advance in advances}
        ours = [settlement for settlement in batch if _partition(settlement) not in fenced]
        now = time_for(connection, ours)
        # Traces before interactions, as at the closing of a trace.
        collected = collect(connection, [(one, incarnations[_partition(one)]) for one in ours], traces)
        kept = [keyed(settlement, incarnations[_partition(settlement)], now) for settlement in collected]
        answers = write_answers(connection, scorer_id, kept)
        entries = [
            Entry(
                item.settlement,
                incarnations[_partition(item.settlement)],
                answers.pk(item),
                position in answers.duplicates,
            )
            for position, item in enumerate(kept)
        ]
        return Settled(counts=write_ledger(connection, entries), fenced=tuple(sorted(fenced)))


def check_batch(settlements: Sequence[Settlement], advances: Sequence[Advance]) -> None:
    """Raise ValueError unless every settlement's partition advances, once, beyond the record."""
    steps = {(advance.topic, advance.partition): advance for advance in advances}
    if len(steps) != len(advances):
        raise ValueError("a partition advances twice in one batch")
    for settlement in settlements:
        record = settlement.record
        step = steps.get(_partition(settlement))
        if step is None or record.offset >= step.next_offset:
            raise ValueError(f"{record.topic}/{record.partition} does not advance beyond offset {record.offset}")
        if (settlement.grounding is None) != (settlement.verdict is None):
            raise ValueError("a grounding and its verdict are stored together")


def _partition(settlement: Settlement) -> PartitionKey:
    return settlement.record.topic, settlement.record.partition


def _broker_times(batch: Sequence[Settlement]) -> dict[PartitionKey, datetime]:
    """The time of each partition's last record that has one."""
    return {
        _partition(settlement): settlement.record.broker_time
        for settlement in batch
        if settlement.record.broker_time is not None
    }
