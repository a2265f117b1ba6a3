"""The message of a review task: its form, and what gives way when it is too large."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.review_task import ReviewTask
from tests.unit.review_tasks import ANSWER, SPANS, review_task
from worker.review.task_message import MessageTooLarge, render, task_message

GOLDEN = Path(__file__).parent.parent / "fixtures" / "review_task.v1.json"


def test_the_message_is_the_one_that_consumers_were_promised() -> None:
    assert json.loads(render(review_task())) == json.loads(GOLDEN.read_text("utf-8"))
    assert ReviewTask.model_validate_json(GOLDEN.read_bytes()) == review_task()


def test_spans_count_code_points() -> None:
    task = review_task()
    assert "🚂" in task.sentences[1].text
    assert [ANSWER[start:end] for start, end in SPANS] == [sentence.text for sentence in task.sentences]


def test_a_message_within_the_limit_is_whole() -> None:
    task = review_task()
    assert task_message(task, len(render(task))) == render(task)


@pytest.mark.parametrize("lost_bytes", [1, 2, 777, 3000])
def test_passages_give_way_by_no_more_than_they_must_and_say_how_much(lost_bytes: int) -> None:
    task = review_task(passage_chars=1000)
    limit = len(render(task)) - lost_bytes
    message = task_message(task, limit)
    cut = ReviewTask.model_validate_json(message)
    assert len(message) <= limit
    # A character more in both of the two would be four bytes.
    assert len(message) > limit - 8
    for before, after in zip(task.passages, cut.passages, strict=True):
        assert before.text == after.text + before.text[len(after.text) :]
        assert after.cut_chars == len(before.text) - len(after.text) > 0
    assert cut.model_copy(update={"passages": task.passages}) == task


def test_short_passages_stay_whole_beside_long_ones() -> None:
    task = review_task(passage_chars=1000)
    short = task.passages[0].model_copy(update={"text": "short"})
    task = task.model_copy(update={"passages": (short, task.passages[1])})
    cut = ReviewTask.model_validate_json(task_message(task, len(render(task)) - 500))
    assert [passage.cut_chars > 0 for passage in cut.passages] == [False, True]


def test_what_is_too_large_without_any_passage_is_refused_with_its_size() -> None:
    task = review_task(passages=0)
    with pytest.raises(MessageTooLarge, match=rf"\b{len(render(task))} bytes") as caught:
        task_message(task, len(render(task)) - 1)
    assert "SUM" not in str(caught.value)
