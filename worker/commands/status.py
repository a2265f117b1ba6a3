"""How far the audit is: positions and lag, outcomes, and what waits for attribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from worker.broker.admin import BrokerAdmin, Extent
from worker.broker.errors import BrokerUnavailable
from worker.rules.settlement import Outcome
from worker.settings.security import kafka_security
from worker.settings.settings import Settings
from worker.store.offsets import PartitionStatus
from worker.store.store import Store

Stored: TypeAlias = Mapping[tuple[str, int], PartitionStatus]
"""By topic and partition."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition; ``next_offset`` is None as long as no worker has owned it.

    Where it ends and how many messages wait in it the broker tells. Without it they are what the workers saw when they
    last stored something, or None.
    """

    topic: str
    partition: int
    next_offset: int | None
    end_offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that ``gasp-worker status`` shows; ``topic`` names all that are read, with commas between.

    ``outcomes`` maps ``outcome`` or ``outcome:reason`` to a count; ``attribution`` and ``rescoring`` map the states of
    jobs to theirs, and ``traces`` has how many are ``open`` and how those that are closed ended. ``broker_problem`` is
    why the broker could not be asked, and what to do; None if it answered.
    """

    topic: str
    broker_problem: str | None
    partitions: tuple[PartitionLag, ...]
    outcomes: dict[str, int]
    attribution: dict[str, int]
    rescoring: dict[str, int]
    traces: dict[str, int]

    @property
    def lag(self) -> int | None:
        """Messages that are logged and not yet settled; None if the broker could not be asked."""
        if self.broker_problem is not None:
            return None
        return sum(partition.lag or 0 for partition in self.partitions)

    def as_json(self) -> dict[str, Any]:
        """A plain structure with the total lag."""
        return asdict(self) | {"lag": self.lag}


def read_status(settings: Settings, store: Store) -> Status:
    """Ask the database and the broker; while that is away there is what the database knows.

    Raises StoreError, and BrokerMisconfigured where trying again is no use.
    """
    stored = {(one.topic, one.partition): one for one in store.offsets.statuses() if one.topic in settings.topics}
    extents = _extents(settings)
    return Status(
        topic=settings.topic,
        broker_problem=str(extents) if isinstance(extents, BrokerUnavailable) else None,
        partitions=tuple(_last_seen(stored) if isinstance(extents, BrokerUnavailable) else _told(stored, extents)),
        outcomes=_named(store.ledger.counts()),
        attribution=asdict(store.attribution_jobs.backlog()),
        rescoring=asdict(store.rescore_jobs.backlog()),
        traces={"open": store.traces.open().open, **_named(store.traces.counts())},
    )


def _named(counts: Mapping[tuple[Outcome, str | None], int]) -> dict[str, int]:
    return {
        str(outcome) if reason is None else f"{outcome}:{reason}": count
        for (outcome, reason), count in sorted(counts.items(), key=str)
    }


def _extents(settings: Settings) -> dict[str, Extent] | BrokerUnavailable:
    try:
        with BrokerAdmin(settings.kafka_bootstrap_servers, security=kafka_security(settings)) as admin:
            return {topic: admin.extent(topic) for topic in settings.topics}
    except BrokerUnavailable as error:
        return error


def _told(stored: Stored, extents: Mapping[str, Extent]) -> Iterator[PartitionLag]:
    for topic, extent in extents.items():
        for partition, end in sorted(extent.ends.items()):
            held = stored.get((topic, partition))
            reached = extent.beginnings.get(partition, 0) if held is None else held.next_offset
            yield PartitionLag(topic, partition, None if held is None else held.next_offset, end, max(0, end - reached))


def _last_seen(stored: Stored) -> Iterator[PartitionLag]:
    for (topic, partition), one in sorted(stored.items()):
        yield PartitionLag(topic, partition, one.next_offset, one.end_offset, one.lag)
