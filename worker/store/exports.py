"""Results that are still to be sent to the systems that the exchanges came from: a row for each verdict and system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy import Connection, Row, Table, and_, select

from worker.rules.exports import ANSWER, SENTENCE, AnswerResults, Result
from worker.store import leases
from worker.store.bulk import insert_rows
from worker.store.repository import Repository, reads, writes
from worker.store.tables import interactions, passages, result_exports, scorers, sentences, verdicts
from worker.store.task_ids import named_uuid

FLAGGED = "flagged"
GROUNDED = "grounded"
# Of a flagged sentence, so many characters are told.
MAX_TOLD_CHARS = 500

_exports, _judged, _logged, _found = result_exports.c, verdicts.c, interactions.c, sentences.c


@dataclass(frozen=True, slots=True)
class ExportJob(leases.LeasedJob):
    """Claimed results. ``answer`` is None if it was deleted, or has nothing to tell, before it could be sent."""

    table: ClassVar[Table] = result_exports

    answer: AnswerResults | None = field(default=None, repr=False)


class Exports(Repository):
    """What is still to be sent."""

    @writes
    def claim(
        self, connection: Connection, destination: str, *, owner: str, limit: int, lease_s: float, max_attempts: int
    ) -> tuple[ExportJob, ...]:
        """Lease the oldest results for a system that are due, with what is to be told; none if none is due."""
        candidates = select(_exports.id).where(_exports.destination == destination).order_by(_exports.id)
        claimed = leases.claim(
            connection,
            result_exports,
            candidates,
            owner=owner,
            lease_s=lease_s,
            max_attempts=max_attempts,
            limit=limit,
        )
        answers = _answers(connection, destination, [row.verdict_id for row in claimed])
        in_order = sorted(claimed, key=lambda row: int(row.id))
        return tuple(ExportJob(row.id, owner, row.attempts, answers.get(row.verdict_id)) for row in in_order)

    @writes
    def finish(self, connection: Connection, job: ExportJob) -> bool:
        """The results were taken. False if the lease was lost."""
        return leases.finish(connection, job)

    @reads
    def open_backlogs(self, connection: Connection) -> dict[str, leases.Backlog]:
        """How many answers wait, run and have failed for each system; ``done`` is 0."""
        return leases.open_backlogs(connection, _exports.destination)


def write_exports(connection: Connection, wanted: Mapping[int, Sequence[str]]) -> None:
    """Enter that verdicts, by id, are to be sent to systems."""
    rows = [(verdict_id, destination) for verdict_id, names in wanted.items() for destination in names]
    insert_rows(connection, result_exports, ("verdict_id", "destination"), rows)


def _answers(connection: Connection, destination: str, verdict_ids: Sequence[int]) -> dict[int, AnswerResults]:
    heads = (
        select(
            _judged.id,
            _judged.scored_at,
            _judged.lowest_score,
            _judged.n_flagged,
            _judged.n_scored,
            scorers.c.label.label("scorer"),
            _logged.app,
            _logged.interaction_id,
            _logged.answer,
            _logged.metadata,
        )
        .join(interactions, _logged.id == _judged.interaction_pk)
        .join(scorers, scorers.c.id == _judged.scorer_id)
        .where(_judged.id.in_(list(verdict_ids)))
    )
    rows: list[Row[Any]] = list(connection.execute(heads))
    return {head.id: _answer(connection, destination, head) for head in rows if head.n_scored}


def _answer(connection: Connection, destination: str, head: Row[Any]) -> AnswerResults:
    flagged = list(connection.execute(_flagged_of(head)))
    named = f"{destination}/{head.app}/{head.interaction_id}"
    whole = Result(
        id=named_uuid(named),
        name=ANSWER,
        score=head.lowest_score,
        label=FLAGGED if head.n_flagged else GROUNDED,
        explanation=f"{head.n_flagged} of {head.n_scored} scored sentences are flagged",
    )
    return AnswerResults(
        trace_id=str(head.metadata.get("trace_id", "")),
        span_id=head.metadata.get("span_id"),
        app=head.app,
        interaction_id=head.interaction_id,
        scorer=head.scorer,
        scored_at=head.scored_at,
        results=(whole, *(_sentence(named, head.answer, row) for row in flagged)),
    )


def _flagged_of(head: Row[Any]) -> Any:  # noqa: ANN401 - a statement of many types
    judged, retrieved = verdicts.c, passages.c
    return (
        select(
            _found.sentence_index,
            _found.start_char,
            _found.end_char,
            _found.score,
            retrieved.passage_id.label("supporting_passage_id"),
        )
        .join(verdicts, and_(judged.id == _found.verdict_id, judged.scored_at == _found.scored_at))
        .join(interactions, _logged.id == judged.interaction_pk)
        .outerjoin(
            passages,
            and_(
                retrieved.interaction_pk == _logged.id,
                retrieved.stored_at == _logged.stored_at,
                retrieved.position == _found.supporting_passage,
            ),
        )
        # By the time as well, which finds the week of the sentences.
        .where(_found.verdict_id == head.id, _found.scored_at == head.scored_at, _found.flagged)
        .order_by(_found.sentence_index)
    )


def _sentence(named: str, answer: str, row: Row[Any]) -> Result:
    text = answer[row.start_char : row.end_char].strip()
    told = text if len(text) <= MAX_TOLD_CHARS else f"{text[: MAX_TOLD_CHARS - 2]} …"
    leans = f" (leans most on {row.supporting_passage_id})" if row.supporting_passage_id else ""
    return Result(
        id=named_uuid(f"{named}/{row.sentence_index}"),
        name=SENTENCE,
        score=row.score,
        label=FLAGGED,
        explanation=f"{told}{leans}",
        sentence=row.sentence_index,
        start=row.start_char,
        end=row.end_char,
    )
