"""What a review task shows to people, put together from the rows of the answer that it is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select, String, and_, cast, func, select, tuple_

from schemas.review_task import AskReason, Attribution, ReviewTask, TaskPassage, TaskSentence
from worker.rules.verdict import ALL_APPS
from worker.store.tables import (
    attribution_jobs,
    interactions,
    passages,
    review_sentences,
    review_tasks,
    scorers,
    sentences,
    thresholds,
    verdicts,
)

_tasks = review_tasks.c
_logged = interactions.c
_judged = verdicts.c
_found = sentences.c
_retrieved = passages.c
_asked = review_sentences.c


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks: of one app or of all (None), created at ``since`` or later, in one of the ``states``."""

    app: str | None = None
    since: datetime | None = None
    states: tuple[str, ...] = ("open", "disputed")


def task_contents(connection: Connection, task_pks: Sequence[int]) -> dict[int, ReviewTask]:
    """The tasks by primary key, without an event id; those whose answer was deleted are left out."""
    heads = {row.id: row for row in connection.execute(_heads().where(_tasks.id.in_(task_pks))) if row.verdict_id}
    if not heads:
        return {}
    asked = _by_first(connection, _asked_of(heads))
    retrieved = _by_first(connection, _passages_of(heads.values()))
    found = _by_first(connection, _sentences_of(heads.values()))
    return {
        pk: _content(head, asked[pk], retrieved[head.interaction_pk], found[head.verdict_id])
        for pk, head in heads.items()
        # A week of sentences may be dropped a moment before its interactions are deleted.
        if found[head.verdict_id]
    }


def task_page(
    connection: Connection, wanted: TaskFilter, after: UUID, limit: int
) -> tuple[UUID | None, list[ReviewTask]]:
    """The next ``limit`` tasks behind the id ``after``, in the order of their ids; their last id, None at the end.

    Ids are hashes, so their order is as good as drawn by lot: whoever stops half way has read a random half. Tasks
    whose answer was deleted count and are left out.
    """
    behind = _wanted(wanted).add_columns(_tasks.task_id).where(_tasks.task_id > after).order_by(_tasks.task_id)
    found = connection.execute(behind.limit(limit)).all()
    contents = task_contents(connection, [row.id for row in found])
    last = found[-1].task_id if len(found) == limit else None
    return last, [contents[row.id] for row in found if row.id in contents]


def count_tasks(connection: Connection, wanted: TaskFilter) -> int:
    """How many tasks there are."""
    return connection.scalars(select(func.count()).select_from(_wanted(wanted).subquery())).one()


def _wanted(wanted: TaskFilter) -> Select[Any]:
    chosen = select(_tasks.id).where(_tasks.state.in_(wanted.states))
    if wanted.app is not None:
        chosen = chosen.where(_tasks.app == wanted.app)
    if wanted.since is not None:
        chosen = chosen.where(_tasks.created_at >= wanted.since)
    return chosen


def _heads() -> Select[Any]:
    """The task, its answer, and where the passages and sentences of the answer lie."""
    of_scorer = and_(_judged.interaction_pk == _logged.id, _judged.scorer_id == _tasks.scorer_id)
    version = func.coalesce(thresholds.c.app, ALL_APPS) + "/" + cast(thresholds.c.version, String)
    return (
        select(
            review_tasks,
            scorers.c.label.label("scorer"),
            version.label("threshold_version"),
            _logged.question,
            _logged.answer,
            _logged.stored_at,
            _judged.id.label("verdict_id"),
            _judged.scored_at,
            _judged.attributed_at,
            attribution_jobs.c.state.label("attribution_state"),
        )
        .join(scorers, scorers.c.id == _tasks.scorer_id)
        .join(thresholds, thresholds.c.id == _tasks.threshold_id)
        .outerjoin(interactions, _logged.id == _tasks.interaction_pk)
        .outerjoin(verdicts, of_scorer)
        .outerjoin(attribution_jobs, attribution_jobs.c.verdict_id == _judged.id)
    )


def _asked_of(task_pks: Iterable[int]) -> Select[Any]:
    return select(_asked.task_pk, _asked.sentence_index, _asked.reason, _asked.probability).where(
        _asked.task_pk.in_(list(task_pks))
    )


def _passages_of(heads: Iterable[Row[Any]]) -> Select[Any]:
    # By the time as well, which finds the week in which a passage lies; so with the sentences.
    places = [(head.interaction_pk, head.stored_at) for head in heads]
    return (
        select(_retrieved.interaction_pk, _retrieved.position, _retrieved.passage_id, _retrieved.text)
        .where(tuple_(_retrieved.interaction_pk, _retrieved.stored_at).in_(places))
        .order_by(_retrieved.interaction_pk, _retrieved.position)
    )


def _sentences_of(heads: Iterable[Row[Any]]) -> Select[Any]:
    places = [(head.verdict_id, head.scored_at) for head in heads]
    return (
        select(sentences)
        .where(tuple_(_found.verdict_id, _found.scored_at).in_(places))
        .order_by(_found.verdict_id, _found.sentence_index)
    )


def _by_first(connection: Connection, wanted: Select[Any]) -> Mapping[int, list[Row[Any]]]:
    """The rows by the value of their first column; an empty list for one that is not there."""
    grouped: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(wanted):
        grouped[row[0]].append(row)
    return grouped


def _content(
    head: Row[Any], asked: Sequence[Row[Any]], retrieved: Sequence[Row[Any]], found: Sequence[Row[Any]]
) -> ReviewTask:
    withdrawn = head.state == "withdrawn"
    questions = {} if withdrawn else {row.sentence_index: row for row in asked}
    ids = {row.position: row.passage_id for row in retrieved}
    return ReviewTask(
        task_id=head.task_id,
        round=head.round,
        reason=AskReason(head.reason),
        probability=head.probability,
        app=head.app,
        interaction_id=head.interaction_id,
        revision=head.revision,
        created_at=head.created_at,
        scorer=head.scorer,
        threshold_version=head.threshold_version,
        question=head.question,
        passages=tuple(TaskPassage(position=row.position, id=row.passage_id, text=row.text) for row in retrieved),
        answer=head.answer,
        sentences=tuple(_sentence(head, row, questions.get(row.sentence_index), ids) for row in found),
        withdrawn_because=head.closed_because if withdrawn else None,
    )


def _sentence(head: Row[Any], row: Row[Any], asked: Row[Any] | None, ids: Mapping[int, str]) -> TaskSentence:
    return TaskSentence(
        index=row.sentence_index,
        start=row.start_char,
        end=row.end_char,
        text=head.answer[row.start_char : row.end_char],
        kind=row.kind,
        asked=asked is not None,
        reason=AskReason(asked.reason) if asked else None,
        probability=asked.probability if asked else None,
        score=row.score,
        gap=row.gap,
        jsd_no_context=row.jsd_no_context,
        surprisal=row.surprisal,
        unsupported_probability=row.unsupported_probability,
        flagged=row.flagged,
        skip_reason=row.skip_reason,
        supporting_passage_position=row.supporting_passage,
        supporting_passage_id=ids.get(row.supporting_passage),
        supporting_passage_positions=_supporting(row),
        support_unlocated=row.support_unlocated is True,
        attribution=_attribution(head, row),
        worst_start=row.worst_start,
        worst_end=row.worst_end,
    )


def _supporting(row: Row[Any]) -> tuple[int, ...]:
    """As the view v_sentences has it: workers of release 0.1.0 name one passage."""
    if row.supporting_passages is not None:
        return tuple(row.supporting_passages)
    return () if row.supporting_passage is None else (row.supporting_passage,)


def _attribution(head: Row[Any], row: Row[Any]) -> Attribution:
    """The word as the view v_sentences has it, but for unlocated, which the contract does not know."""
    if row.supporting_chunk is not None:
        return Attribution.SUPPORTED
    if row.gap is None:
        return Attribution.NOT_WANTED
    if head.attributed_at is not None:
        return Attribution.NONE_REACTS
    if head.attribution_state is None:
        return Attribution.NOT_WANTED
    return Attribution.FAILED if head.attribution_state == "failed" else Attribution.WAITING
