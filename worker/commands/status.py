"""How far the audit is: positions and lag, outcomes, and what waits for attribution."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from worker.broker.admin import BrokerAdmin
from worker.settings.security import kafka_security
from worker.settings.settings import Settings
from worker.store.store import Store


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition; ``next_offset`` is None as long as no worker has owned it."""

    partition: int
    next_offset: int | None
    end_offset: int
    lag: int


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that ``gasp-worker status`` shows.

    ``outcomes`` maps ``outcome`` or ``outcome:reason`` to a count; ``attribution`` and ``rescoring`` map the states of
    jobs to theirs.
    """

    topic: str
    partitions: tuple[PartitionLag, ...]
    outcomes: dict[str, int]
    attribution: dict[str, int]
    rescoring: dict[str, int]

    @property
    def lag(self) -> int:
        """Messages that are logged and not yet settled."""
        return sum(partition.lag for partition in self.partitions)

    def as_json(self) -> dict[str, Any]:
        """A plain structure with the total lag."""
        return asdict(self) | {"lag": self.lag}


def read_status(settings: Settings, store: Store) -> Status:
    """Ask the broker and the database. Raises BrokerError or StoreError."""
    positions = store.offsets.positions(settings.topic)
    with BrokerAdmin(settings.kafka_bootstrap_servers, security=kafka_security(settings)) as admin:
        extent = admin.extent(settings.topic)
    return Status(
        topic=settings.topic,
        partitions=tuple(
            _partition(partition, positions.get(partition), extent.beginnings.get(partition, 0), end)
            for partition, end in sorted(extent.ends.items())
        ),
        outcomes={
            str(outcome) if reason is None else f"{outcome}:{reason}": count
            for (outcome, reason), count in sorted(store.ledger.counts().items(), key=str)
        },
        attribution=asdict(store.attribution_jobs.backlog()),
        rescoring=asdict(store.rescore_jobs.backlog()),
    )


def _partition(partition: int, next_offset: int | None, beginning: int, end: int) -> PartitionLag:
    reached = beginning if next_offset is None else next_offset
    return PartitionLag(partition, next_offset, end, max(0, end - reached))
