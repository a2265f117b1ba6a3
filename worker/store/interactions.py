"""What was logged: interactions in their revisions, and their passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    LargeBinary,
    Row,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    func,
    select,
    true,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert
from sqlalchemy.sql.selectable import TableValuedAlias

from gasp_core.grounding import Exchange, Passage
from gasp_core.text.evidence import passage_skip
from gasp_core.text.marks import without_marks
from worker.rules.records import Record
from worker.rules.settlement import Origin
from worker.store.bulk import Values, arrays, insert_from_arrays, insert_rows, parts, unrolled
from worker.store.deliveries import Delivery, first_received_at
from worker.store.repository import Repository, reads
from worker.store.revisions import ContentKey, NewRevision, RevisionPlan, StoredRevision
from worker.store.tables import INTERACTION_TIME, interactions, passages, verdicts

_INTERACTION_COLUMNS = (
    "app",
    "interaction_id",
    "content_hash",
    "revision",
    "is_current",
    "occurred_at",
    "received_at",
    "question",
    "answer",
    "generator_model",
    "metadata",
    "repairs",
    "adapter",
    "source_topic",
    "source_partition",
    "source_offset",
    "newest_delivery",
    "answer_marks",
    "sources",
    "trace",
)
_CONTENT_KEY = ("app", "interaction_id", "content_hash")
_DELIVERY_COLUMNS = ("received_at", "source_topic", "source_partition", "source_offset", "newest_delivery")
_CURRENT_COLUMNS = ("id", "newest_delivery")
_PASSAGE_COLUMNS = ("interaction_pk", "position", "passage_id", "text", "score", "metadata", "skip_reason")


class Interactions(Repository):
    """What was logged, as far as it is asked about."""

    @reads
    def known(
        self, connection: Connection, scorer_id: int, keys: Sequence[tuple[str, str, str]]
    ) -> set[tuple[str, str, str]]:
        """Those of the (app, interaction id, content hash in hexadecimal) that have a verdict of this scorer."""
        rows = [(app, interaction_id, bytes.fromhex(content_hash)) for app, interaction_id, content_hash in keys]
        return {
            (row.app, row.interaction_id, row.content_hash.hex())
            for part in parts(rows)
            for row in connection.execute(_find_known(), {**arrays(_CONTENT_KEY, part), "scorer": scorer_id})
        }

    @reads
    def apps(self, connection: Connection) -> list[str]:
        """Every app that has interactions."""
        return stored_apps(connection)

    @reads
    def apps_with(self, connection: Connection, answers: int, days: int) -> list[str]:
        """Every app that has so many answers, or more, of the last days. Of each no more of the index is read."""
        apps = _each_app().cte("each_app")
        logged = interactions.c
        newer = (logged.app == apps.c.app, logged.stored_at >= func.now() - timedelta(days=days))
        last = select(logged.id).where(*newer).offset(answers - 1).limit(1).correlate(apps).scalar_subquery()
        return list(connection.scalars(select(apps.c.app).where(last.is_not(None))))


def stored_apps(connection: Connection) -> list[str]:
    """Every app that has interactions."""
    return list(connection.scalars(_each_app()))


def _each_app() -> Select[tuple[str]]:
    """Goes from app to app in the index, whatever their number of rows."""
    first = select(func.min(interactions.c.app).label("app")).cte("apps", recursive=True)
    following = select(func.min(interactions.c.app)).where(interactions.c.app > first.c.app).scalar_subquery()
    found = first.union_all(select(following).where(first.c.app.is_not(None)))
    return select(found.c.app).where(found.c.app.is_not(None))


def stored_revisions(
    connection: Connection, scorer_id: int, keys: Iterable[ContentKey]
) -> dict[ContentKey, StoredRevision]:
    """Every revision of the interactions that the keys belong to.

    They stay locked to the end of the transaction, so that of two workers at once the second sees which content the
    first found to be current.
    """
    return {
        (row.app, row.interaction_id, row.content_hash): StoredRevision(
            row.id, row.revision, row.is_current, row.has_verdict, _newest_delivery(row), row.logged_at
        )
        for part in parts(sorted({key[:2] for key in keys}))
        for row in connection.execute(_find_revisions(), {**arrays(_CONTENT_KEY[:2], part), "scorer": scorer_id})
    }


def write_revisions(connection: Connection, plan: RevisionPlan) -> dict[ContentKey, int]:
    """Insert the plan's new revisions with their passages, and move what is current; return the new primary keys."""
    if plan.superseded:
        superseded = interactions.c.id.in_(plan.superseded)
        connection.execute(update(interactions).where(superseded).values(is_current=False))
    if plan.current:
        moved = [(pk, delivery.as_row()) for pk, delivery in sorted(plan.current.items())]
        for part in parts(moved):
            connection.execute(_make_current(), arrays(_CURRENT_COLUMNS, part))
    # Sorted, so that two workers that store the same interactions wait for each other in one direction only.
    rows = [_interaction_values(key, plan.added[key]) for key in sorted(plan.added)]
    keys = {
        (row.app, row.interaction_id, row.content_hash): row.id
        for part in parts(rows)
        for row in connection.execute(_insert_interactions(), arrays(_INTERACTION_COLUMNS, part))
    }
    logged = [values for key, pk in keys.items() for values in _passage_values(pk, plan.added[key])]
    insert_rows(connection, passages, _PASSAGE_COLUMNS, logged)
    return keys


def stored_exchanges(connection: Connection, interaction_pks: Sequence[int]) -> dict[int, Exchange]:
    """The part of each interaction that is scored, as it was scored when it came; those that are gone are left out."""
    logged, retrieved = interactions.c, passages.c
    wanted = logged.id.in_(interaction_pks)
    found: dict[int, list[Passage]] = defaultdict(list)
    # By the time as well, which finds the week in which a passage lies.
    theirs = and_(retrieved.interaction_pk == logged.id, retrieved.stored_at == logged.stored_at)
    listed = select(logged.id, retrieved.passage_id, retrieved.text).join(passages, theirs).where(wanted)
    for row in connection.execute(listed.order_by(logged.id, retrieved.position)):
        found[row.id].append(Passage(row.passage_id, row.text))
    return {
        row.id: Exchange(row.question, tuple(found[row.id]), without_marks(row.answer, stored_marks(row.answer_marks)))
        for row in connection.execute(
            select(logged.id, logged.question, logged.answer, logged.answer_marks).where(wanted)
        )
    }


def stored_marks(column: Sequence[Mapping[str, int]] | None) -> tuple[tuple[int, int], ...]:
    """What the column ``answer_marks`` says, as spans."""
    return tuple((mark["start"], mark["end"]) for mark in column or ())


@cache
def _find_known() -> Select[tuple[str, str, bytes]]:
    """Those keys that have a verdict of ``scorer``."""
    asked = unrolled(app=Text(), interaction_id=Text(), content_hash=LargeBinary())
    judged = (
        select(interactions.c.id)
        .join(verdicts, verdicts.c.interaction_pk == interactions.c.id)
        .where(*_same(asked, _CONTENT_KEY), verdicts.c.scorer_id == bindparam("scorer"))
        .limit(1)
        .lateral("judged")
    )
    return select(*(asked.c[name] for name in _CONTENT_KEY)).select_from(asked.join(judged, true()))


@cache
def _find_revisions() -> Select[Any]:
    """Every revision of the interactions, and whether it has a verdict of ``scorer``."""
    asked = unrolled(app=Text(), interaction_id=Text())
    stored, judged = interactions.c, verdicts.c
    theirs = (
        select(
            *(stored[name] for name in ("id", *_CONTENT_KEY, "revision", "is_current", *_DELIVERY_COLUMNS)),
            INTERACTION_TIME.label("time"),
            func.coalesce(stored.occurred_at, stored.received_at).label("logged_at"),
            judged.id.is_not(None).label("has_verdict"),
        )
        .outerjoin(verdicts, and_(judged.interaction_pk == stored.id, judged.scorer_id == bindparam("scorer")))
        .where(*_same(asked, _CONTENT_KEY[:2]))
        .order_by(stored.id)
        .offset(0)
        .with_for_update(of=interactions, key_share=True)
        .lateral("theirs")
    )
    return select(*theirs.c).select_from(asked.join(theirs, true()))


@cache
def _make_current() -> Update:
    source = unrolled(id=BigInteger(), newest_delivery=interactions.c.newest_delivery.type)
    moved = update(interactions).where(interactions.c.id == source.c.id)
    return moved.values(is_current=True, newest_delivery=source.c.newest_delivery)


def _newest_delivery(row: Row[Any]) -> Delivery:
    """That of the content's first record, unless a later one is noted."""
    if row.newest_delivery is not None:
        return Delivery.from_row(row.newest_delivery)
    return Delivery(row.time, row.received_at, row.source_topic, row.source_partition, 0, row.source_offset)


@cache
def _insert_interactions() -> ReturningInsert[Any]:
    key = (interactions.c[name] for name in ("id", *_CONTENT_KEY))
    return insert_from_arrays(interactions, _INTERACTION_COLUMNS).returning(*key)


def _same(asked: TableValuedAlias, names: Sequence[str]) -> list[ColumnElement[bool]]:
    """For a lateral subquery that PostgreSQL cannot merge, because of its limit or offset.

    Merged, it would be a join whose plan is made when the tables are nearly empty, reads them from end to end, and
    stays in use until they have grown and were analysed.
    """
    return [interactions.c[name] == asked.c[name] for name in names]


def _interaction_values(key: ContentKey, new: NewRevision) -> Values:
    """In the order of _INTERACTION_COLUMNS."""
    record, decoded, logged = new.record, new.decoded, new.decoded.interaction
    received_at = first_received_at(record)
    return (
        *key,
        new.revision,
        new.is_current,
        logged.occurred_at,
        received_at,
        logged.question,
        logged.answer,
        logged.generator_model,
        logged.metadata,
        list(decoded.repairs),
        decoded.adapter,
        record.topic,
        record.partition,
        record.offset,
        None if _is_that_of_the_row(new.delivery, record) else new.delivery.as_row(),
        [{"start": start, "end": end} for start, end in logged.marks] or None,
        *origin_values(new.origin),
    )


def origin_values(origin: Origin | None) -> Values:
    """The columns ``sources`` and ``trace``, which are NULL of what came in one message."""
    if origin is None:
        return (None, None)
    sources = [
        {
            "topic": source.topic,
            "partition": source.partition,
            "incarnation": source.incarnation,
            "offsets": list(source.offsets),
        }
        for source in origin.sources
    ]
    return (sources, {"system": origin.trace.system, "id": origin.trace.id, "closed_by": origin.closed_by.value})


def _is_that_of_the_row(delivery: Delivery, record: Record) -> bool:
    """Whether the other columns say the same."""
    place = (delivery.topic, delivery.partition, delivery.incarnation, delivery.offset, delivery.item)
    return delivery.trace_pk is None and place == (record.topic, record.partition, 0, record.offset, 1)


def _passage_values(interaction_pk: int, new: NewRevision) -> list[Values]:
    """In the order of _PASSAGE_COLUMNS. The position is the passage's index in ``Exchange.passages``."""
    return [
        (
            interaction_pk,
            position,
            passage.id,
            passage.text,
            passage.score,
            passage.metadata,
            passage_skip(passage.text),
        )
        for position, passage in enumerate(new.decoded.interaction.passages)
    ]
