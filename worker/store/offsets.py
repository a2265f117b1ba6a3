"""How far each partition has been read, and by whom. The row's ``next_offset`` is the truth; Kafka's is for lag tools.

A worker claims a partition when its group gives it one, and then moves it step by step. A step is refused if the
partition was claimed by another owner meanwhile or does not stand where the worker believes it to: that fences a worker
that has lost its partition without knowing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    DateTime,
    Integer,
    Row,
    Update,
    bindparam,
    case,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from worker.rules.claims import Claim, LossReason, LostOffsets, Position
from worker.rules.settlement import Advance
from worker.store.bulk import arrays, unrolled
from worker.store.errors import StoreNotReady
from worker.store.repository import Repository, reads, writes
from worker.store.tables import offset_gaps, partition_offsets

PartitionKey = tuple[str, int]
Stored = Row[int, int, int, str | None, str, int | None, datetime | None, int, str | None, bool]
"""Next offset, incarnation, generation, topic id, owner, end offset, time of vanishing, attempts and consumer group of
a partition; whether it was claimed or moved lately."""
Rows = Sequence[Row[int, int, str | None]]
"""Partition, incarnation and topic id of what a topic has in the database."""

# A consumer group whose workers were silent for so long does not read the topic any more.
_GROUP_SILENT = timedelta(seconds=60)

_offsets = partition_offsets.c


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


class Offsets(Repository):
    """How far each partition has been read, and by whom."""

    @reads
    def positions(self, connection: Connection, topic: str) -> dict[int, int]:
        """The next offset of each partition of the topic that has been started."""
        found = select(_offsets.partition, _offsets.next_offset).where(_offsets.topic == topic)
        return {row.partition: row.next_offset for row in connection.execute(found)}

    @reads
    def partitions(self, connection: Connection) -> tuple[PartitionKey, ...]:
        """Every partition that has begun, also those that are gone with their topic: what was booked of them stays."""
        found = select(_offsets.topic, _offsets.partition).order_by(_offsets.topic, _offsets.partition)
        return tuple((row.topic, row.partition) for row in connection.execute(found))

    @reads
    def statuses(self, connection: Connection) -> tuple[PartitionStatus, ...]:
        """Every partition that has begun and is still there, by topic and number."""
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
        known = select(*(partition_offsets.c[name] for name in names)).where(_offsets.vanished_at.is_(None))
        found = known.order_by("topic", "partition")
        return tuple(PartitionStatus(**row._asdict()) for row in connection.execute(found))

    @writes
    def claim(self, connection: Connection, claim: Claim) -> Position | None:
        """Make the claimant the owner; say where to go on. None if the owner is of a later generation of the group.

        Messages that are gone are skipped and entered as lost. Raises StoreNotReady if another consumer group has
        moved the partition lately.
        """
        known = _rows(connection, claim.topic)
        stored = _locked_row(connection, claim, known)
        _require_one_group(stored, claim)
        if stored.generation > claim.generation and stored.owner != claim.owner and not claim.insists:
            return None
        position = _position(stored, claim, known)
        if position.lost is not None:
            _enter_lost(connection, claim, claim.partition, stored.incarnation, position.lost)
        taken = update(partition_offsets).where(_offsets.topic == claim.topic, _offsets.partition == claim.partition)
        has_moved = position.next_offset != stored.next_offset or position.incarnation != stored.incarnation
        connection.execute(
            taken.values(
                **({"batch_attempts": 0, "offset_attempts": 0} if has_moved else {}),
                next_offset=position.next_offset,
                incarnation=position.incarnation,
                topic_id=claim.topic_id or stored.topic_id,
                owner=claim.owner,
                consumer_group=claim.consumer_group or stored.consumer_group,
                generation=claim.generation,
                end_offset=stored.end_offset if position.incarnation == stored.incarnation else None,
                updated_at=func.now(),
                vanished_at=None,
            )
        )
        return replace(position, vanished=_enter_vanished(connection, claim))

    @writes
    def note_ends(
        self, connection: Connection, topic: str, owner: str, ends: Mapping[int, int], age_s: float = 0.0
    ) -> None:
        """Partitions ended there so many seconds ago, as the broker said. Those of other owners are left out."""
        asked = unrolled(partition=Integer(), end_offset=BigInteger())
        rows = sorted(ends.items())
        ours = (_offsets.topic == topic, _offsets.owner == owner, _offsets.partition == asked.c.partition)
        noted = update(partition_offsets).where(*ours)
        connection.execute(
            noted.values(end_offset=asked.c.end_offset, end_asked_at=func.now() - timedelta(seconds=age_s)),
            arrays(("partition", "end_offset"), rows),
        )

    @writes
    def take_back_attempt(self, connection: Connection, advances: Sequence[Advance]) -> None:
        """The batch was left in good order: what kept it from its end has nothing to do with it."""
        for advance in _in_order(advances):
            less = func.greatest(_offsets.batch_attempts - 1, 0), func.greatest(_offsets.offset_attempts - 1, 0)
            _count(connection, advance, *less)


def count_attempt(connection: Connection, advances: Sequence[Advance]) -> int:
    """Count that a batch is begun in the partitions that are still ours; how often it was where it was most often.

    That is 1 at first, and grows while the position does not move at all.
    """
    more = _offsets.batch_attempts + 1, _offsets.offset_attempts + 1
    return max((_count(connection, advance, *more) for advance in _in_order(advances)), default=0)


def _in_order(advances: Sequence[Advance]) -> list[Advance]:
    """The same order for everyone, so that two owners cannot wait for each other."""
    return sorted(advances, key=lambda step: (step.topic, step.partition))


def _count(connection: Connection, advance: Advance, batch: ColumnElement[int], offset: ColumnElement[int]) -> int:
    """Set the attempts of a partition that stands where the batch begins, or within it; 0 if it is no longer ours."""
    ours = (
        _offsets.topic == advance.topic,
        _offsets.partition == advance.partition,
        _offsets.owner == advance.owner,
        _offsets.incarnation == advance.incarnation,
        _offsets.next_offset >= advance.expected,
        _offsets.next_offset < advance.next_offset,
    )
    counted = update(partition_offsets).where(*ours).values(batch_attempts=batch, offset_attempts=offset)
    return connection.execute(counted.returning(_offsets.offset_attempts)).scalar_one_or_none() or 0


def advance_all(
    connection: Connection, advances: Sequence[Advance], broker_times: dict[PartitionKey, datetime]
) -> set[PartitionKey]:
    """Take every step that its owner may still take; return the partitions where it may not.

    The rows stay locked until the transaction ends, so a second owner waits here and is then refused.
    """
    fenced = set()
    for advance in _in_order(advances):
        key = (advance.topic, advance.partition)
        if not _advance(connection, advance, broker_times.get(key)):
            fenced.add(key)
    return fenced


def _rows(connection: Connection, topic: str) -> Rows:
    found = select(_offsets.partition, _offsets.incarnation, _offsets.topic_id).where(_offsets.topic == topic)
    return connection.execute(found).all()


def _locked_row(connection: Connection, claim: Claim, known: Rows) -> Stored:
    """The partition's row, which begins now if it never did, kept from everyone else until the transaction ends."""
    if claim.partition not in {row.partition for row in known}:
        _begin(connection, claim, known)
    found = (
        select(
            _offsets.next_offset,
            _offsets.incarnation,
            _offsets.generation,
            _offsets.topic_id,
            _offsets.owner,
            _offsets.end_offset,
            _offsets.vanished_at,
            _offsets.batch_attempts,
            _offsets.consumer_group,
            (_offsets.updated_at > func.now() - _GROUP_SILENT).label("is_moved_lately"),
        )
        .where(_offsets.topic == claim.topic, _offsets.partition == claim.partition)
        .with_for_update()
    )
    return connection.execute(found).one()


def _require_one_group(stored: Stored, claim: Claim) -> None:
    """Two groups would take the partition from each other for ever. One that took another's place may go on."""
    theirs = stored.consumer_group
    if not stored.is_moved_lately or None in {theirs, claim.consumer_group} or theirs == claim.consumer_group:
        return
    raise StoreNotReady(
        f"{claim.topic}[{claim.partition}] is read into this database by the consumer group {theirs}, too: set "
        f"GASP_CONSUMER_GROUP alike in all workers, or give each group a GASP_DATABASE_URL of its own; a group that "
        f"takes its place can begin {_GROUP_SILENT.seconds} s after the last worker of {theirs} has ended"
    )


def _begin(connection: Connection, claim: Claim, known: Rows) -> None:
    """Enter a partition that has no row.

    Who is the first on a topic begins all partitions that it has, so that one without a row is known to be new: it
    begins at its first message, whatever the first start was to be. The lowest partition decides who is the first; a
    second one waits for its row and finds it there.
    """
    firsts = claim.first_offsets or {claim.partition: claim.first_offset}
    lowest = min(firsts)
    if not known and _insert_new(connection, claim, {lowest: firsts[lowest]}, 0):
        others = {partition: offset for partition, offset in firsts.items() if partition != lowest}
        _insert_new(connection, claim, others, 0)
        return
    known = known or _rows(connection, claim.topic)
    _insert_new(connection, claim, {claim.partition: claim.beginning_offset}, _incarnation(claim, known))


def _insert_new(connection: Connection, claim: Claim, offsets: Mapping[int, int], incarnation: int) -> bool:
    """Enter those of the partitions that have no row; whether there was one."""
    if not offsets:
        return False
    same = {"topic": claim.topic, "topic_id": claim.topic_id, "incarnation": incarnation}
    begun = [{**same, "partition": partition, "next_offset": offset} for partition, offset in sorted(offsets.items())]
    entered = postgresql.insert(partition_offsets).values(begun).on_conflict_do_nothing()
    return bool(connection.execute(entered.returning(_offsets.partition)).all())


def _incarnation(claim: Claim, known: Rows) -> int:
    """The number of the topic that the claim speaks of, among what there is of its name: the next one if it is new."""
    same = [
        row.incarnation for row in known if row.topic_id == claim.topic_id or None in {row.topic_id, claim.topic_id}
    ]
    return max(same) if same else max((row.incarnation for row in known), default=-1) + 1


def _position(stored: Stored, claim: Claim, known: Rows) -> Position:
    if claim.topic_id is not None and stored.topic_id not in {None, claim.topic_id}:
        # What went with a partition that vanished was entered then.
        unread = LostOffsets(stored.next_offset, None, LossReason.TOPIC_RECREATED) if not stored.vanished_at else None
        # Workers of release 0.1.0 count for each partition alone.
        incarnation = max(_incarnation(claim, known), stored.incarnation + 1)
        return Position(claim.beginning_offset, incarnation, unread)
    if stored.next_offset < claim.beginning_offset:
        unread = LostOffsets(stored.next_offset, claim.beginning_offset, LossReason.RETENTION)
        return Position(claim.beginning_offset, stored.incarnation, unread)
    return Position(stored.next_offset, stored.incarnation, attempts=stored.batch_attempts)


def _enter_vanished(connection: Connection, claim: Claim) -> dict[int, LostOffsets]:
    """Note the partitions that an earlier topic of this name had and this one has not; return what was lost with them.

    A topic never loses single partitions.
    """
    if claim.topic_id is None or not claim.first_offsets:
        return {}
    gone = (
        update(partition_offsets)
        .where(
            _offsets.topic == claim.topic,
            _offsets.partition.not_in(claim.first_offsets),
            _offsets.topic_id != claim.topic_id,
            _offsets.vanished_at.is_(None),
        )
        .values(vanished_at=func.now())
        .returning(_offsets.partition, _offsets.incarnation, _offsets.next_offset)
    )
    vanished = {}
    for row in connection.execute(gone).all():
        vanished[row.partition] = LostOffsets(row.next_offset, None, LossReason.TOPIC_RECREATED)
        _enter_lost(connection, claim, row.partition, row.incarnation, vanished[row.partition])
    return vanished


def _enter_lost(connection: Connection, claim: Claim, partition: int, incarnation: int, lost: LostOffsets) -> None:
    connection.execute(
        insert(offset_gaps).values(
            topic=claim.topic,
            partition=partition,
            incarnation=incarnation,
            from_offset=lost.from_offset,
            to_offset=lost.to_offset,
            reason=lost.reason.value,
            owner=claim.owner,
        )
    )


def _advance(connection: Connection, advance: Advance, broker_time: datetime | None) -> bool:
    values = {
        "a_topic": advance.topic,
        "a_partition": advance.partition,
        "a_expected": advance.expected,
        "a_incarnation": advance.incarnation,
        "a_owner": advance.owner,
        "a_generation": advance.generation,
        "a_next_offset": advance.next_offset,
        "a_end_offset": advance.end_offset,
        "a_broker_time": broker_time,
        "a_ends_batch": advance.ends_batch,
    }
    return connection.execute(_step(), values).rowcount == 1


@cache
def _step() -> Update:
    """Built once: to build a statement takes longer than to run it. The prefix keeps columns and parameters apart."""
    return (
        update(partition_offsets)
        .where(
            _offsets.topic == bindparam("a_topic"),
            _offsets.partition == bindparam("a_partition"),
            _offsets.next_offset == bindparam("a_expected"),
            _offsets.incarnation == bindparam("a_incarnation"),
            _offsets.owner == bindparam("a_owner"),
            _offsets.generation <= bindparam("a_generation"),
        )
        .values(
            next_offset=bindparam("a_next_offset"),
            # It may have been asked for since the last fetch.
            end_offset=func.greatest(bindparam("a_end_offset", type_=BigInteger()), _offsets.end_offset),
            generation=bindparam("a_generation"),
            last_broker_time=func.coalesce(
                bindparam("a_broker_time", type_=DateTime(timezone=True)), _offsets.last_broker_time
            ),
            batch_attempts=case((bindparam("a_ends_batch", type_=Boolean()), 0), else_=_offsets.batch_attempts),
            offset_attempts=0,
            updated_at=func.now(),
        )
    )
