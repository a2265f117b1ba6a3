"""The partitions that a worker holds: claimed in Postgres, and where each goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from worker.broker.admin import Extent
from worker.broker.errors import BrokerMisconfigured
from worker.broker.source import RecordSource
from worker.rules.claims import Claim, LostOffsets
from worker.rules.records import Record
from worker.rules.settlement import Advance
from worker.runtime.telemetry import Telemetry
from worker.store.errors import StoreError
from worker.store.offsets import Offsets

CLAIM_AGAIN_S = 1.0
# What the group has not taken back after so many session timeouts is ours, whatever generation the database names.
INSIST_SESSIONS = 1.5

FirstStart = Literal["earliest", "latest"] | datetime
"""Where the partitions of a topic begin of which none was ever read: at an end, or at the first message since a time.

A partition that appears later begins at its first message.
"""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Held:
    """A partition that is ours: where it goes on, and the generation of the group in which we claimed it.

    ``attempts`` is how many batches were begun before that and not settled to their end.
    """

    next_offset: int
    incarnation: int
    generation: int
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Since when an owner of a later generation stands against our claim, by the monotonic clock, and our next try."""

    since: float
    again_at: float


class Placement:
    """Claims what the group gives us. The truth about positions is in Postgres; ``held`` follows it.

    A claim that an owner of a later generation stands against is repeated, and insists after ``insist_after_s`` in
    which the group has let us keep the partition: then the group has begun anew and counts its generations from one.
    """

    def __init__(
        self,
        *,
        source: RecordSource,
        offsets: Offsets,
        topic: str,
        consumer_group: str,
        owner: str,
        first_start: FirstStart,
        insist_after_s: float,
        telemetry: Telemetry,
    ) -> None:
        self._source = source
        self._offsets = offsets
        self._topic = topic
        self._consumer_group = consumer_group
        self._owner = owner
        self._first_start = first_start
        self._insist_after_s = insist_after_s
        self._telemetry = telemetry
        self._unplaced: set[int] = set()
        self._refusals: dict[int, Refusal] = {}
        self.held: dict[int, Held] = {}

    @property
    def running(self) -> Set[int]:
        """The partitions that are held and read from where they stand."""
        return self.held.keys() - self._unplaced

    def is_next(self, record: Record) -> bool:
        """Whether the record is ours to settle: of a partition that we hold, and not settled yet."""
        held = self.held.get(record.partition)
        return held is not None and record.offset >= held.next_offset

    def advance(self, partition: int, next_offset: int) -> Advance:
        """The step of a held partition to ``next_offset``."""
        held = self.held[partition]
        return Advance(
            topic=self._topic,
            partition=partition,
            expected=held.next_offset,
            next_offset=next_offset,
            owner=self._owner,
            # While the group settles, the source may for a moment not know its generation.
            generation=max(held.generation, self._source.generation()),
            incarnation=held.incarnation,
            end_offset=self._source.end_offset(partition),
        )

    def placed(self, partition: int) -> None:
        """The partition is read from where it stands."""
        self._unplaced.discard(partition)

    def taken(self, advance: Advance) -> None:
        """The step is in the database."""
        held = self.held.get(advance.partition)
        if held is not None and held.next_offset == advance.expected:
            held.next_offset = advance.next_offset

    def take_back_attempt(self, advances: Sequence[Advance]) -> None:
        """A batch is left in good order, without its end. A fault of the database is no matter then."""
        with suppress(StoreError):
            self._offsets.take_back_attempt(advances)

    def fenced(self, partitions: Set[int]) -> None:
        """Another worker has claimed these, or did so before they came back to us: claim them again if they are."""
        self._unplaced |= partitions & self.held.keys()

    def take_rebalance(self) -> list[int]:
        """Follow the group, and claim what waits for it; give the partitions that were claimed now, to be placed.

        Raises StoreError, BrokerUnavailable or BrokerMisconfigured. What is not placed is claimed again.
        """
        change = self._source.take_rebalance()
        for partition in change.revoked:
            self._give_up(partition)
        gained = change.assigned - (self._unplaced - change.revoked)
        self._unplaced = (self._unplaced - change.revoked) | change.assigned
        if gained or change.revoked:
            self._telemetry.metrics.rebalanced()
            log.info("rebalanced", assigned=sorted(gained), revoked=sorted(change.revoked))
        due = sorted(partition for partition in self._unplaced if self._is_due(partition))
        return self._claim_all(due) if due else []

    def _give_up(self, partition: int) -> None:
        self._refusals.pop(partition, None)
        if self.held.pop(partition, None) is not None:
            self._telemetry.metrics.revoked(self._topic, partition)

    def _is_due(self, partition: int) -> bool:
        refusal = self._refusals.get(partition)
        return refusal is None or time.monotonic() >= refusal.again_at

    def _claim_all(self, partitions: list[int]) -> list[int]:
        extent = self._source.extent()
        firsts = self._first_offsets(extent)
        return [partition for partition in partitions if self._claim(partition, firsts, extent)]

    def _first_offsets(self, extent: Extent) -> Mapping[int, int]:
        if self._first_start == "earliest":
            return extent.beginnings
        if self._first_start == "latest":
            return extent.ends
        return {**extent.ends, **self._source.offsets_since(self._first_start)}

    def _claim(self, partition: int, firsts: Mapping[int, int], extent: Extent) -> bool:
        claim = Claim(
            topic=self._topic,
            partition=partition,
            owner=self._owner,
            generation=self._source.generation(),
            first_offset=firsts[partition],
            beginning_offset=extent.beginnings[partition],
            topic_id=extent.topic_id,
            insists=self._insists(partition),
            first_offsets=firsts,
            consumer_group=self._consumer_group,
        )
        position = self._offsets.claim(claim)
        if position is None:
            self._note_refusal(claim)
            return False
        if position.lost is not None:
            self._note_lost(partition, position.lost, position.next_offset)
        for vanished, lost in position.vanished.items():
            self._note_lost(vanished, lost, None)
        self._require_known(partition, position.next_offset, extent)
        self._refusals.pop(partition, None)
        self.held[partition] = Held(position.next_offset, position.incarnation, claim.generation, position.attempts)
        return True

    def _insists(self, partition: int) -> bool:
        refusal = self._refusals.get(partition)
        return refusal is not None and time.monotonic() - refusal.since > self._insist_after_s

    def _note_refusal(self, claim: Claim) -> None:
        now = time.monotonic()
        before = self._refusals.get(claim.partition)
        if before is None:
            log.warning("claim_refused", partition=claim.partition, generation=claim.generation)
        self._refusals[claim.partition] = Refusal(before.since if before else now, now + CLAIM_AGAIN_S)
        self.held.pop(claim.partition, None)

    def _note_lost(self, partition: int, lost: LostOffsets, next_offset: int | None) -> None:
        """``next_offset`` is None for a partition that is gone."""
        self._telemetry.metrics.passed_over(lost)
        log.error(
            "offsets_lost",
            topic=self._topic,
            partition=partition,
            reason=lost.reason,
            from_offset=lost.from_offset,
            to_offset=lost.to_offset,
            next_offset=next_offset,
        )

    def _require_known(self, partition: int, position: int, extent: Extent) -> None:
        """Refuse to wait for ever at an offset that the partition has not reached."""
        if position <= extent.ends[partition]:
            return
        # The partition may have grown since we asked, and its last owner with it.
        end = self._source.extent().ends[partition]
        if position > end:
            message = (
                f"{self._topic}[{partition}] ends at {end}, but the database stands at {position}: the broker has lost "
                "messages or the database belongs to another cluster; set GASP_TOPIC or GASP_DATABASE_URL right"
            )
            raise BrokerMisconfigured(message)
