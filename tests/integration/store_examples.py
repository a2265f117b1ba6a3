"""Small hand-made exchanges with their scores, as the worker would hand them to the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row

from gasp_core.grounding import (
    AnswerGrounding,
    AnswerSkip,
    Chunk,
    ChunkDrop,
    Method,
    Sentence,
    SentenceGrounding,
    SentenceSkip,
    Truncation,
    UnitKind,
)
from gasp_core.identity import ScorerIdentity
from gasp_core.support_search import SupportSearch
from schemas.decoding import Decoded
from schemas.interaction import Interaction, Passage
from worker.rules.claims import Claim
from worker.rules.records import Record
from worker.rules.selection import Reason, Selected, Selection
from worker.rules.settlement import Advance, Outcome, Settlement
from worker.rules.verdict import TermValues, Threshold, judge
from worker.store.store import Store

TOPIC = "interactions"
IDENTITY = ScorerIdentity("tiny", "0123456789abcdef", "float32", "plain-1", "gasp-1")
OTHER_IDENTITY = ScorerIdentity("tiny", "0123456789abcdef", "bfloat16", "plain-1", "gasp-1")
FLAG_BELOW = 0.1
ATTRIBUTE_BELOW = 0.5
BROKER_TIME_MS = 1_764_500_000_000
OCCURRED_AT = datetime(2025, 11, 30, 10, 0, tzinfo=UTC)
_SENTENCE = "Zug n\N{COMBINING DIAERESIS} \N{STEAM LOCOMOTIVE}{number}. "


def prepared(store: Store, identity: ScorerIdentity = IDENTITY, partitions: int = 1) -> tuple[int, Threshold]:
    """A store with a scorer, its default threshold and partitions that begin at 0; the scorer's id and threshold."""
    scorer_id = store.scorers.register(identity)
    store.thresholds.ensure_default(scorer_id, FLAG_BELOW, ATTRIBUTE_BELOW, "for tests")
    for partition in range(partitions):
        assert store.offsets.claim(claim(partition)) is not None
    threshold = store.thresholds.in_force(scorer_id)[None]
    return scorer_id, threshold


def record(offset: int, partition: int = 0, timestamp_ms: int | None = BROKER_TIME_MS) -> Record:
    return Record(TOPIC, partition, offset, None, b"{}", timestamp_ms=timestamp_ms)


def answer_of(n_sentences: int, edition: str = "") -> str:
    return edition + "".join(_SENTENCE.format(number=number) for number in range(n_sentences))


def interaction(interaction_id: str, answer: str, *, app: str = "shop", passages: int = 2) -> Interaction:
    return Interaction(
        interaction_id=interaction_id,
        app=app,
        occurred_at=OCCURRED_AT,
        question="When does the train leave?",
        passages=tuple(
            Passage(id=f"p{number}", text=f"Passage {number} on trains.", score=number / 7, metadata={"page": number})
            for number in range(passages)
        ),
        answer=answer,
        generator_model="writer-1",
        metadata={"channel": "web", "nested": {"n": [1, 2.5, None, "ü"]}},
    )


def grounding(
    scores: Sequence[float | None], edition: str = "", skip_reason: AnswerSkip | None = None
) -> AnswerGrounding:
    """What a detector scores like this, for ``answer_of(len(scores), edition)``; None is a sentence too short to score.

    The detector of the examples turns the gap's sign round, so that whoever takes one for the other is found out.
    """
    sentences = []
    start = 0
    for index, score in enumerate(scores):
        end = len(answer_of(index + 1, edition))
        span = Sentence(start, end, UnitKind.PROSE)
        if score is None:
            sentences.append(SentenceGrounding(index, span, 4, skip_reason=SentenceSkip.TOO_SHORT))
        else:
            sentences.append(SentenceGrounding(index, span, 4, -score, jsd_no_context=0.25, surprisal=1.5))
        start = end
    n_windows = 0 if skip_reason else 1
    return AnswerGrounding(Method.TWO_PASS, tuple(sentences), (), Truncation(120, 20, 30, 0), skip_reason, n_windows)


def scores_of(found: AnswerGrounding) -> list[float | None]:
    """What the detector of the examples says."""
    return [None if one.gap is None else -one.gap for one in found.sentences]


def attributed(scores: Sequence[float | None], drops: Sequence[Sequence[float]]) -> AnswerGrounding:
    """What leave-one-out adds: for each sentence the drop of each chunk."""
    plain = grounding(scores)
    chunks = tuple(Chunk(passage=number, start=0, end=10, group=number) for number in range(len(drops[0])))
    read = [
        replace(found, drops=tuple(ChunkDrop(number, value, 0.125) for number, value in enumerate(values)))
        for found, values in zip(plain.sentences, drops, strict=True)
    ]
    sentences = SupportSearch(read, chunks, [tuple(range(len(chunks)))]).sentences()
    return AnswerGrounding(Method.LEAVE_ONE_OUT, sentences, chunks, plain.truncation, n_windows=1)


def scored(
    offset: int,
    interaction_id: str,
    scores: Sequence[float | None],
    threshold: Threshold,
    *,
    edition: str = "",
    partition: int = 0,
    app: str = "shop",
    passages: int = 2,
    terms: Sequence[TermValues | None] | None = None,
) -> Settlement:
    """A record that was decoded, scored and judged. Another ``edition`` is other content."""
    found = grounding(scores, edition)
    logged = interaction(interaction_id, answer_of(len(scores), edition), app=app, passages=passages)
    decoded = Decoded(logged, "native", ("bom", 'it\'s, {quoted} \\ "so"'))
    return Settlement(
        record(offset, partition),
        Outcome.SCORED,
        decoded=decoded,
        grounding=found,
        verdict=judge(scores_of(found), threshold, terms),
    )


def at(settlement: Settlement, hours: int | None) -> Settlement:
    """The same exchange, so many hours later, or at a time that the message does not say."""
    assert settlement.decoded is not None
    time = None if hours is None else OCCURRED_AT + timedelta(hours=hours)
    logged = settlement.decoded.interaction.model_copy(update={"occurred_at": time})
    return replace(settlement, decoded=replace(settlement.decoded, interaction=logged))


def selected(
    settlement: Settlement,
    *,
    indexes: Sequence[int] = (0,),
    probability: float = 0.5,
    channels: tuple[str, ...] = ("kafka", "webhook"),
    reviewers: int = 1,
) -> Settlement:
    """The same, with people to be asked about the sentences of these indexes, all at one probability."""
    verdict = settlement.verdict
    assert verdict is not None
    chosen = tuple(
        Selected(index, probability, Reason.FLAGGED if verdict.flagged[index] else Reason.SAMPLED) for index in indexes
    )
    reason = Reason.FLAGGED if any(one.reason is Reason.FLAGGED for one in chosen) else Reason.SAMPLED
    selection = Selection(probability, reason, chosen)
    return replace(settlement, verdict=replace(verdict, selection=selection, reviewers=reviewers), channels=channels)


def skipped(offset: int, interaction_id: str, threshold: Threshold) -> Settlement:
    """An answer that could not be scored at all; its only sentence says so."""
    span = Sentence(0, len(answer_of(1)), UnitKind.PROSE)
    sentence = SentenceGrounding(0, span, 4, skip_reason=SentenceSkip.NO_PASSAGES)
    found = AnswerGrounding(Method.TWO_PASS, (sentence,), (), Truncation(0, 0, 4, 0), AnswerSkip.NO_PASSAGES)
    decoded = Decoded(interaction(interaction_id, answer_of(1), passages=0), "native")
    return Settlement(
        record(offset),
        Outcome.SKIPPED,
        "no_passages",
        decoded=decoded,
        grounding=found,
        verdict=judge(scores_of(found), threshold),
    )


def dead_letter(offset: int, partition: int = 0, item: int = 1) -> Settlement:
    return Settlement(record(offset, partition), Outcome.DEAD_LETTERED, "not_json", "line 1 column 1", item=item)


def claim(
    partition: int = 0, owner: str = "worker-1", generation: int = 3, *, first: int = 0, beginning: int = 0
) -> Claim:
    return Claim(TOPIC, partition, owner, generation, first, beginning, topic_id="first-topic")


def advance(
    expected: int,
    next_offset: int,
    partition: int = 0,
    *,
    owner: str = "worker-1",
    generation: int = 3,
    incarnation: int = 0,
) -> Advance:
    return Advance(TOPIC, partition, expected, next_offset, owner, generation, incarnation, end_offset=next_offset + 5)


def age(url: str, interaction_id: str, days: int) -> None:
    """Make an interaction look as if it had been stored and judged so many days ago."""
    own = {"id": interaction_id, "days": timedelta(days=days)}
    pks = "(SELECT id FROM interactions WHERE interaction_id = %(id)s)"
    judged = f"(SELECT id FROM verdicts WHERE interaction_pk IN {pks})"
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        connection.execute("SELECT ensure_weeks(now() - %(days)s, now())", own)
        # All of them change together; the references would be looked at after each.
        connection.execute("SET session_replication_role = replica")
        for table, column, chosen in (
            ("interactions", "stored_at", f"id IN {pks}"),
            ("passages", "stored_at", f"interaction_pk IN {pks}"),
            ("sentences", "scored_at", f"verdict_id IN {judged}"),
            ("verdicts", "scored_at", f"id IN {judged}"),
        ):
            connection.execute(f"UPDATE {table} SET {column} = {column} - %(days)s WHERE {chosen}", own)


def rows(url: str, sql: str, **parameters: object) -> list[dict[str, Any]]:
    """Run one statement on its own connection and return its rows, if it makes any."""
    plain = url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(plain, row_factory=dict_row) as connection:
        done = connection.execute(sql, parameters)
        return done.fetchall() if done.description else []
