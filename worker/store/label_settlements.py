"""The one transaction that books a batch of the label topic: offsets, labels, tasks and ledger, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from worker.rules.label_settlement import LabelSettlement
from worker.rules.settlement import Advance, Outcome, Settled, Settlement
from worker.store.labels import LabelOutcome, add_labels
from worker.store.ledger import Entry, write_ledger
from worker.store.offsets import PartitionKey, advance_all
from worker.store.repository import Repository, writes
from worker.store.settlements import check_batch

# A record of which nothing was stored is skipped, for the first of these that applies to a label of it.
_WITHOUT_EFFECT = (LabelOutcome.REPEATED, LabelOutcome.NOTHING_TO_WITHDRAW)


class LabelSettlements(Repository):
    """Batches of labels, booked."""

    def settle(self, settlements: Sequence[LabelSettlement], advances: Sequence[Advance]) -> Settled:
        """Book a batch of the label topic in one transaction, as ``Settlements.settle`` does one of interactions.

        Whether the sentences exist must have been asked before (``Labels.unknown_sentences``). A record of which
        nothing was new is booked as skipped. Raises ValueError as the other does.
        """
        check_batch(settlements, advances)
        return self._book(settlements, advances)

    @writes
    def _book(self, connection: Connection, batch: Sequence[LabelSettlement], advances: Sequence[Advance]) -> Settled:
        """Book what belongs to partitions that are still ours; say what was booked and which partitions were not.

        The offsets come first, as with interactions: a second owner of a partition waits there and is then fenced.
        """
        fenced = advance_all(connection, advances, _broker_times(batch))
        kept = [item for item in batch if _partition(item) not in fenced]
        outcomes = add_labels(
            connection, [label for item in kept for label in item.labels], "topic", refuse_unknown=False
        )
        incarnations = {(advance.topic, advance.partition): advance.incarnation for advance in advances}
        entries = []
        start = 0
        for item in kept:
            end = start + len(item.labels)
            entries.append(Entry(_booked(item, outcomes[start:end]), incarnations[_partition(item)]))
            start = end
        return Settled(counts=write_ledger(connection, entries), fenced=tuple(sorted(fenced)))


def _booked(settlement: Settlement, outcomes: Sequence[LabelOutcome]) -> Settlement:
    """The record as labelled, unless it is a dead letter or nothing of it was new."""
    if settlement.outcome is not Outcome.LABELLED or any(one not in _WITHOUT_EFFECT for one in outcomes):
        return settlement
    reason = next(reason for reason in _WITHOUT_EFFECT if reason in outcomes)
    return replace(settlement, outcome=Outcome.SKIPPED, reason=reason.value)


def _partition(item: LabelSettlement) -> PartitionKey:
    return item.record.topic, item.record.partition


def _broker_times(batch: Sequence[LabelSettlement]) -> dict[PartitionKey, datetime]:
    """The time of each partition's last record that has one."""
    times = ((_partition(item), item.record.broker_time) for item in batch)
    return {partition: time for partition, time in times if time is not None}
