"""Second opinions: one row for each flagged sentence that a verifier was, or is to be, asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from sqlalchemy import Connection, Row, Select, Table, and_, exists, func, insert, literal, select, update

from gasp_core.text.marks import said_between
from worker.rules.opinion import Opinion
from worker.store import leases
from worker.store.interactions import stored_exchanges, stored_marks
from worker.store.repository import Repository, writes
from worker.store.tables import interactions, second_opinions, sentences, verdicts

# Sentences of answers that were attributed before this time are not asked about any more.
RECENT = timedelta(days=1)
REMOVED = "the answer was removed"

_ONE_QUEUES = "gasp queue_opinions"
_QUEUED_COLUMNS = ("verdict_id", "scored_at", "sentence_index", "verifier", "priority")

_jobs, _judged, _found, _logged = second_opinions.c, verdicts.c, sentences.c, interactions.c


@dataclass(frozen=True, slots=True)
class OpinionJob(leases.LeasedJob):
    """A claimed sentence with what it is judged by: the passage that supports it first, if any does."""

    table: ClassVar[Table] = second_opinions

    question: str = field(repr=False)
    passages: tuple[str, ...] = field(repr=False)
    answer: str = field(repr=False)
    sentence: str = field(repr=False)


class OpinionJobs(Repository):
    """The queue of flagged sentences that a verifier is to be asked about."""

    @writes
    def queue(self, connection: Connection, scorer_id: int, verifier: str, *, daily: int, limit: int) -> int:
        """Queue the lowest flagged sentences that the verifier was never asked about; return how many.

        At most ``limit``, of current answers that the scorer judged and that were attributed within RECENT. No more
        than ``daily`` are queued on one day (UTC), whoever the verifier. None if another worker does this now.
        """
        alone = func.pg_try_advisory_xact_lock(func.hashtext(_ONE_QUEUES))
        if not connection.scalars(select(alone)).one():
            return 0
        left = min(limit, daily - _queued_today(connection))
        if left <= 0:
            return 0
        chosen = _unasked(scorer_id, verifier).limit(left)
        # Locked, so that an answer that retention deletes at this moment is left out.
        chosen = chosen.with_for_update(of=verdicts, read=True, key_share=True, skip_locked=True)
        queue = insert(second_opinions).from_select(_QUEUED_COLUMNS, chosen)
        # An INSERT tells its count only when it is asked to.
        return connection.execute(queue, execution_options={"preserve_rowcount": True}).rowcount

    @writes
    def claim(
        self, connection: Connection, owner: str, verifier: str, lease_s: float, max_attempts: int
    ) -> OpinionJob | None:
        """Lease the verifier's due sentence with the lowest score, or return None.

        One whose text is gone is failed, and so is one that was started ``max_attempts`` times without an end.
        """
        candidates = select(_jobs.id).where(_jobs.verifier == verifier).order_by(_jobs.priority, _jobs.id)
        terms: dict[str, Any] = {"owner": owner, "lease_s": lease_s, "max_attempts": max_attempts}
        while claimed := leases.claim(connection, second_opinions, candidates, **terms):
            job = _load(connection, owner, claimed[0])
            if job.passages:
                return job
            leases.fail(connection, job, REMOVED)
        return None

    @writes
    def finish(self, connection: Connection, job: OpinionJob, opinion: Opinion) -> bool:
        """Store the opinion and close the job. False, with nothing written, if the lease was lost."""
        said = {"label": opinion.label.value, "p_unsupported": opinion.p_unsupported}
        written = connection.execute(update(second_opinions).where(leases.is_ours(job)).values(**said)).rowcount
        return bool(written) and leases.finish(connection, job)


def _queued_today(connection: Connection) -> int:
    today = func.date_trunc("day", func.now(), "UTC")
    return connection.scalars(select(func.count()).where(_jobs.created_at >= today)).one()


def _unasked(scorer_id: int, verifier: str) -> Select[Any]:
    asked = exists().where(
        _jobs.verdict_id == _judged.id, _jobs.sentence_index == _found.sentence_index, _jobs.verifier == verifier
    )
    return (
        select(_judged.id, _judged.scored_at, _found.sentence_index, literal(verifier), _found.score)
        .select_from(verdicts)
        .join(interactions, _logged.id == _judged.interaction_pk)
        # By the time as well, which finds the week in which a sentence lies.
        .join(sentences, and_(_found.verdict_id == _judged.id, _found.scored_at == _judged.scored_at))
        .where(_judged.attributed_at >= func.now() - RECENT, _judged.n_flagged > 0, _judged.scorer_id == scorer_id)
        .where(_logged.is_current, _found.flagged, ~asked)
        .order_by(_found.score, _judged.id, _found.sentence_index)
    )


def _load(connection: Connection, owner: str, claimed: Row[Any]) -> OpinionJob:
    """Read what is to be judged. Without passages if it is gone: what is flagged has some."""
    place = and_(_found.verdict_id == claimed.verdict_id, _found.sentence_index == claimed.sentence_index)
    found = connection.execute(
        select(_judged.interaction_pk, _logged.answer, _logged.answer_marks)
        .add_columns(_found.start_char, _found.end_char, _found.supporting_passage)
        .join(interactions, _logged.id == _judged.interaction_pk)
        .join(sentences, and_(_found.verdict_id == _judged.id, _found.scored_at == _judged.scored_at))
        .where(place, _found.scored_at == claimed.scored_at)
    ).one_or_none()
    # A week of sentences or passages may be dropped a moment before its interactions are deleted.
    exchanges = {} if found is None else stored_exchanges(connection, [found.interaction_pk])
    if found is None or found.interaction_pk not in exchanges:
        return OpinionJob(claimed.id, owner, claimed.attempts, question="", passages=(), answer="", sentence="")
    exchange = exchanges[found.interaction_pk]
    sentence = said_between(found.answer, stored_marks(found.answer_marks), found.start_char, found.end_char)
    passages = [passage.text for passage in exchange.passages]
    if passages and found.supporting_passage is not None:
        passages.insert(0, passages.pop(found.supporting_passage))
    return OpinionJob(
        claimed.id,
        owner,
        claimed.attempts,
        question=exchange.question,
        passages=tuple(passages),
        answer=exchange.answer,
        sentence=sentence.strip(),
    )
