"""Answers with review tasks, and what reviewers say of their sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from schemas.review_label import ReviewLabel
from tests.integration.store_examples import advance, prepared, rows, scored
from worker.store.store import Store

APP = "shop"
GAPS = [0.01, 0.9, None, 0.05]
"""Of the four sentences of an answer the third is too short to have a score."""
ASKED = (0, 1)
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

_TASK = """
INSERT INTO review_tasks (app, interaction_id, revision, interaction_pk, scorer_id, threshold_id, reason, probability,
    lowest_score, reviewers)
SELECT i.app, i.interaction_id, i.revision, i.id, v.scorer_id, v.threshold_id, 'flagged', 1, v.lowest_score,
    %(reviewers)s
FROM interactions i JOIN verdicts v ON v.interaction_pk = i.id
WHERE i.interaction_id = %(interaction_id)s AND i.revision = %(revision)s
RETURNING id, task_id
"""
_SENTENCES = """
INSERT INTO review_sentences (task_pk, sentence_index, start_char, end_char, score, flagged, reason, probability)
SELECT t.id, s.sentence_index, s.start_char, s.end_char, s.score, s.flagged,
    CASE WHEN s.flagged THEN 'flagged' ELSE 'sampled' END, CASE WHEN s.flagged THEN 1 ELSE 0.25 END
FROM review_tasks t JOIN verdicts v ON v.interaction_pk = t.interaction_pk AND v.scorer_id = t.scorer_id
JOIN sentences s ON s.verdict_id = v.id WHERE t.id = %(task_pk)s AND s.sentence_index = ANY (%(asked)s)
"""
_OUTBOX = "INSERT INTO outbox (task_pk, channel, round) SELECT %(task_pk)s, unnest(%(channels)s::text[]), 1"


def answered(store: Store, *interaction_ids: str) -> None:
    """Store an answer of four sentences under each id, and nothing for people to do."""
    scorer_id, threshold = prepared(store)
    batch = [scored(offset, name, GAPS, threshold) for offset, name in enumerate(interaction_ids)]
    store.settlements.settle(scorer_id, batch, [advance(0, len(batch))])


def asked(url: str, interaction_id: str, *, reviewers: int = 1, revision: int = 1) -> UUID:
    """Ask about the first two sentences of an answer, on both channels; the task's id."""
    (task,) = rows(url, _TASK, interaction_id=interaction_id, reviewers=reviewers, revision=revision)
    rows(url, _SENTENCES, task_pk=task["id"], asked=list(ASKED))
    rows(url, _OUTBOX, task_pk=task["id"], channels=["kafka", "webhook"])
    task_id: UUID = task["task_id"]
    return task_id


def label(
    task: UUID | str, sentence_index: int, word: str, reviewer: str = "ada", *, minute: int = 0, **other: object
) -> ReviewLabel:
    """What a reviewer says, so many minutes past noon, of a sentence of a task or of an interaction id's answer."""
    place: dict[str, object] = (
        {"task_id": task} if isinstance(task, UUID) else {"app": APP, "interaction_id": task, "revision": 1}
    )
    return ReviewLabel.model_validate(
        {
            "tool": "desk",
            "external_id": f"{reviewer}:{task}:{sentence_index}",
            **place,
            "sentence_index": sentence_index,
            "label": word,
            "reviewer": reviewer,
            "labelled_at": NOON + timedelta(minutes=minute),
            **other,
        }
    )


def withdrawal(external_id: str, *, minute: int = 0, tool: str = "desk") -> ReviewLabel:
    """Take back what came in under an external id, without saying what it was."""
    return ReviewLabel.model_validate(
        {
            "tool": tool,
            "external_id": external_id,
            "action": "withdraw",
            "labelled_at": NOON + timedelta(minutes=minute),
        }
    )


def task_state(url: str, task: UUID) -> tuple[str, int]:
    """State and round."""
    (found,) = rows(url, "SELECT state, round FROM review_tasks WHERE task_id = %(task)s", task=task)
    return found["state"], found["round"]


def held(url: str) -> list[tuple[Any, ...]]:
    """What holds: interaction, sentence, reviewer and label."""
    found = rows(url, "SELECT interaction_id, sentence_index, reviewer, label FROM v_review_labels ORDER BY 1, 2, 3")
    return [tuple(row.values()) for row in found]


def consensus(url: str) -> dict[int, bool]:
    """What the reviewers agree on, by sentence: whether it is unsupported."""
    found = rows(url, "SELECT sentence_index, unsupported FROM v_review_consensus ORDER BY interaction_id, 1")
    return {row["sentence_index"]: row["unsupported"] for row in found}
