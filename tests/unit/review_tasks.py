"""Review tasks by hand, for tests without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from schemas.review_task import AskReason, Attribution, ReviewTask, TaskPassage, TaskSentence

ANSWER = "=SUM(A1) is it. Für 🚂 nicht. Heading"
SPANS = ((0, 16), (16, 29), (29, 36))


def review_task(*, passage_chars: int = 20, passages: int = 2, answer: str = ANSWER) -> ReviewTask:
    """A task on three sentences of which the first two are asked about; the second is supported."""
    texts = [("@" + "ä" * passage_chars)[:passage_chars] for _ in range(passages)]
    first, second, heading = (answer[start:end] for start, end in SPANS)
    return ReviewTask(
        task_id=UUID(int=7),
        event_id=UUID(int=8),
        round=1,
        reason=AskReason.FLAGGED,
        probability=0.5,
        app="shop",
        interaction_id="i-1",
        revision=1,
        created_at=datetime(2026, 11, 30, 12, tzinfo=UTC),
        scorer="tiny@0123 float32",
        threshold_version="*/1",
        question="Which?",
        passages=tuple(TaskPassage(position=at, id=f"p{at}", text=text) for at, text in enumerate(texts)),
        answer=answer,
        sentences=(
            TaskSentence(
                index=0,
                start=0,
                end=16,
                text=first,
                kind="prose",
                asked=True,
                reason=AskReason.FLAGGED,
                probability=0.5,
                score=-0.5,
                gap=-0.25,
                jsd_no_context=0.1,
                surprisal=2.0,
                flagged=True,
                attribution=Attribution.NONE_REACTS,
                worst_start=4,
                worst_end=15,
            ),
            TaskSentence(
                index=1,
                start=16,
                end=29,
                text=second,
                kind="prose",
                asked=True,
                reason=AskReason.SAMPLED,
                probability=0.25,
                score=1.5,
                gap=0.75,
                jsd_no_context=0.2,
                surprisal=1.0,
                unsupported_probability=0.1,
                flagged=False,
                supporting_passage_position=1,
                supporting_passage_id="p1",
                supporting_passage_positions=(1,),
                attribution=Attribution.SUPPORTED,
            ),
            TaskSentence(
                index=2,
                start=29,
                end=36,
                text=heading,
                kind="heading",
                asked=False,
                skip_reason="heading",
                attribution=Attribution.NOT_WANTED,
            ),
        ),
    )
