"""A label that is given on the page, or taken back: the same rows as of every other way in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from schemas.review_label import Label, LabelAction, ReviewLabel
from schemas.review_task import ReviewTask
from worker.page.reviewer import Reviewer
from worker.store.labels import LabelOutcome, Labels
from worker.store.review_queue import Said

TOOL = "page"
BROKEN = "[passages wrong or unreadable]"


def label_of(task: ReviewTask, sentence_index: int, who: Reviewer, form: Mapping[str, str]) -> ReviewLabel:
    """What a form says of a sentence. Raises HTTPException 400 if that is no label."""
    is_broken = "broken" in form
    word = form.get("label") or (Label.CANT_TELL.value if is_broken else None)
    note = " ".join(part for part in (BROKEN if is_broken else "", form.get("note", "").strip()) if part)
    said = {
        "tool": TOOL,
        # A reviewer has one judgement of a sentence; said again it is a correction.
        "external_id": f"{task.task_id}/{sentence_index}/{who.name}",
        "task_id": task.task_id,
        "app": task.app,
        "interaction_id": task.interaction_id,
        "revision": task.revision,
        "sentence_index": sentence_index,
        "reviewer": who.name,
        "labelled_at": datetime.now(UTC),
        "label": word,
        "detail": form.get("detail") or None if word == Label.UNSUPPORTED else None,
        "note": note or None,
    }
    try:
        return ReviewLabel.model_validate(said)
    except ValidationError:
        raise HTTPException(400, "Choose one of the labels.") from None


def withdrawal_of(said: Said, who: Reviewer) -> ReviewLabel:
    """What takes a label back."""
    return ReviewLabel.model_validate(
        {
            "tool": TOOL,
            "external_id": said.external_id,
            "action": LabelAction.WITHDRAW,
            "task_id": said.asked.task_id,
            "app": said.app,
            "interaction_id": said.interaction_id,
            "revision": said.revision,
            "sentence_index": said.asked.sentence_index,
            "reviewer": who.name,
            "labelled_at": datetime.now(UTC),
        }
    )


def store(labels: Labels, label: ReviewLabel) -> None:
    """Store it. Raises HTTPException 409 if its answer has gone meanwhile, and StoreError."""
    if labels.add([label], "page") == [LabelOutcome.UNKNOWN_SENTENCE]:
        raise HTTPException(409, "This sentence is not there any more.")
