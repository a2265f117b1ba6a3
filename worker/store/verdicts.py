"""What was found: the verdict of an answer, its sentences, and what leave-one-out adds to them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache

from sqlalchemy import Connection, Update, func, update
from sqlalchemy.sql.dml import ReturningInsert

from gasp_core.grounding import AnswerGrounding, Method, SentenceGrounding
from worker.store.bulk import Values, arrays, insert_from_arrays, insert_rows, parts, update_from_arrays
from worker.store.errors import StoreRejected
from worker.store.exports import write_exports
from worker.store.revisions import Judged
from worker.store.tables import attribution_jobs, chunk_attributions, sentences, verdicts

_VERDICT_COLUMNS = (
    "interaction_pk",
    "scorer_id",
    "threshold_id",
    "method",
    "skip_reason",
    "lowest_score",
    "context_tokens",
    "context_tokens_cut",
    "context_windows",
    "answer_tokens",
    "answer_tokens_cut",
    "n_sentences",
    "n_scored",
    "n_flagged",
    "language",
    "language_supported",
)
_SENTENCE_COLUMNS = (
    "verdict_id",
    "sentence_index",
    "start_char",
    "end_char",
    "kind",
    "n_tokens",
    "score",
    "gap",
    "jsd_no_context",
    "surprisal",
    "skip_reason",
    "context_window",
    "flagged",
    "unsupported_probability",
    "terms",
    "correction",
    "worst_start",
    "worst_end",
)
_CHUNK_COLUMNS = (
    "verdict_id",
    "sentence_index",
    "chunk_index",
    "passage_position",
    "start_char",
    "end_char",
    "chunk_group",
    "drop",
    "jsd",
    "scored_at",
)
# The time finds the week in which a sentence lies.
_SENTENCE_KEYS = ("verdict_id", "sentence_index", "scored_at")
_SUPPORT_COLUMNS = (
    "supporting_chunk",
    "supporting_passage",
    "supporting_passages",
    "supporting_drop",
    "support_unlocated",
    "contradicting_chunk",
    "contradicting_passage",
    "contradicting_drop",
)


def write_verdicts(connection: Connection, scorer_id: int, judged: Mapping[int, Judged]) -> None:
    """Insert a verdict with its sentences for each interaction's primary key, and a job where attribution is wanted.

    Also what is to be sent of it to other systems. An answer that was scored by leave-one-out at once gets its
    attributions here and no job.
    """
    keys = _insert_verdicts(connection, scorer_id, judged)
    found = {verdict_id: judged[interaction_pk] for interaction_pk, verdict_id in keys.items()}
    rows = [values for verdict_id, item in found.items() for values in _sentence_values(verdict_id, item)]
    insert_rows(connection, sentences, _SENTENCE_COLUMNS, rows)
    attributed = {key: item.grounding for key, item in found.items() if item.grounding.method is Method.LEAVE_ONE_OUT}
    jobs = [
        (key, scorer_id, item.verdict.lowest_score)
        for key, item in found.items()
        if item.verdict.wants_attribution and key not in attributed
    ]
    write_exports(connection, {key: item.exports for key, item in found.items()})
    insert_rows(connection, attribution_jobs, ("verdict_id", "scorer_id", "priority"), jobs)
    if attributed:
        write_attributions(connection, attributed)


def write_attributions(connection: Connection, groundings: Mapping[int, AnswerGrounding]) -> None:
    """Add what leave-one-out found to the verdicts whose ids are the keys.

    The features of the first two passes stay as they are: the verdict was given on them. Raises StoreRejected if a
    verdict has not the sentences that were attributed.
    """
    done = update(verdicts).where(verdicts.c.id.in_(list(groundings)))
    done = done.values(attributed_at=func.now(), method=Method.LEAVE_ONE_OUT.value)
    found = [
        (row.id, row.scored_at, groundings[row.id])
        for row in connection.execute(done.returning(verdicts.c.id, verdicts.c.scored_at))
    ]
    insert_rows(connection, chunk_attributions, _CHUNK_COLUMNS, [row for one in found for row in _chunk_values(*one)])
    _update_support(connection, [row for one in found for row in _support_values(*one)])


def _insert_verdicts(connection: Connection, scorer_id: int, judged: Mapping[int, Judged]) -> dict[int, int]:
    """Return the verdict's id for each interaction's primary key."""
    rows = [_verdict_values(interaction_pk, scorer_id, judged[interaction_pk]) for interaction_pk in sorted(judged)]
    return {
        row.interaction_pk: row.id
        for part in parts(rows)
        for row in connection.execute(_verdicts_from_arrays(), arrays(_VERDICT_COLUMNS, part))
    }


@cache
def _verdicts_from_arrays() -> ReturningInsert[tuple[int, int]]:
    return insert_from_arrays(verdicts, _VERDICT_COLUMNS).returning(verdicts.c.interaction_pk, verdicts.c.id)


def _verdict_values(interaction_pk: int, scorer_id: int, judged: Judged) -> Values:
    """In the order of _VERDICT_COLUMNS."""
    grounding, read, language = judged.grounding, judged.grounding.truncation, judged.verdict.language
    return (
        interaction_pk,
        scorer_id,
        judged.verdict.threshold.id,
        grounding.method,
        grounding.skip_reason,
        judged.verdict.lowest_score,
        read.context_tokens,
        read.context_tokens_cut,
        grounding.n_windows,
        read.answer_tokens,
        read.answer_tokens_cut,
        len(grounding.sentences),
        sum(sentence.gap is not None for sentence in grounding.sentences),
        sum(flagged is True for flagged in judged.verdict.flagged),
        None if language is None else language.tag,
        None if language is None else language.is_supported,
    )


def _sentence_values(verdict_id: int, judged: Judged) -> list[Values]:
    """In the order of _SENTENCE_COLUMNS."""
    verdict = judged.verdict
    return [
        (
            verdict_id,
            found.index,
            found.sentence.start,
            found.sentence.end,
            found.sentence.kind,
            found.n_tokens,
            score,
            found.gap,
            found.jsd_no_context,
            found.surprisal,
            found.skip_reason,
            None if found.gap is None else found.window,
            flagged,
            probability,
            None if terms is None else list(terms),
            correction,
            *(found.worst or (None, None)),
        )
        for found, score, flagged, probability, terms, correction in zip(
            judged.grounding.sentences,
            verdict.scores,
            verdict.flagged,
            verdict.probabilities,
            verdict.terms,
            verdict.corrections,
            strict=True,
        )
    ]


def _chunk_values(verdict_id: int, scored_at: datetime, grounding: AnswerGrounding) -> list[Values]:
    """In the order of _CHUNK_COLUMNS."""
    rows: list[Values] = []
    for sentence in grounding.sentences:
        for drop in sentence.drops:
            chunk = grounding.chunks[drop.chunk]
            place = (drop.chunk, chunk.passage, chunk.start, chunk.end, chunk.group)
            rows.append((verdict_id, sentence.index, *place, drop.drop, drop.jsd, scored_at))
    return rows


def _support_values(verdict_id: int, scored_at: datetime, grounding: AnswerGrounding) -> list[Values]:
    """In the order of _SENTENCE_KEYS and _SUPPORT_COLUMNS. The largest drop is kept as well where no chunk reacts."""
    return [
        (verdict_id, sentence.index, scored_at, *_support(sentence, grounding))
        for sentence in grounding.sentences
        if sentence.drops
    ]


def _support(sentence: SentenceGrounding, grounding: AnswerGrounding) -> Values:
    """What speaks for the sentence and against it, in the order of _SUPPORT_COLUMNS."""
    drops = {drop.chunk: drop.drop for drop in sentence.drops}
    supporting, contradicting = sentence.supporting_chunk, sentence.contradicting_chunk
    return (
        supporting,
        None if supporting is None else grounding.chunks[supporting].passage,
        sorted({grounding.chunks[chunk].passage for chunk in sentence.supporting_chunks}),
        sentence.supporting_drop,
        sentence.unlocated,
        contradicting,
        None if contradicting is None else grounding.chunks[contradicting].passage,
        None if contradicting is None else drops[contradicting],
    )


def _update_support(connection: Connection, rows: list[Values]) -> None:
    statement = _support_from_arrays()
    updated = sum(
        connection.execute(statement, arrays((*_SENTENCE_KEYS, *_SUPPORT_COLUMNS), part)).rowcount
        for part in parts(rows)
    )
    if updated != len(rows):
        raise StoreRejected(f"{len(rows) - updated} attributed sentences are not the verdict's: it was cut otherwise")


@cache
def _support_from_arrays() -> Update:
    return update_from_arrays(sentences, _SENTENCE_KEYS, _SUPPORT_COLUMNS)
