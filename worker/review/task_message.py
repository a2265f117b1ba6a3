"""The message that a review task becomes: JSON as the contract has it, within a size limit."""

from __future__ import annotations

from schemas.review_task import ReviewTask, TaskPassage


class MessageTooLarge(Exception):  # noqa: N818 - reads as the fact it states
    """Even without the text of its passages a task is larger than a message may be; ``size_bytes`` is what is left."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"too large: {size_bytes} bytes without passages")
        self.size_bytes = size_bytes


def task_message(task: ReviewTask, max_bytes: int) -> bytes:
    """The task as JSON in UTF-8, ``max_bytes`` at the most.

    If it is larger, the texts of its passages are cut at their ends, all to the same length and no shorter than need
    be; each says how much it lost. Raises MessageTooLarge if that does not do.
    """
    whole = render(task)
    if len(whole) <= max_bytes:
        return whole
    kept_chars, too_many = 0, max((len(passage.text) for passage in task.passages), default=0)
    fitting = render(_cut(task, kept_chars))
    if len(fitting) > max_bytes:
        raise MessageTooLarge(len(fitting))
    while too_many - kept_chars > 1:
        middle = (kept_chars + too_many) // 2
        shorter = render(_cut(task, middle))
        if len(shorter) <= max_bytes:
            kept_chars, fitting = middle, shorter
        else:
            too_many = middle
    return fitting


def render(task: ReviewTask) -> bytes:
    """The task as JSON in UTF-8, whatever its size."""
    return task.model_dump_json(by_alias=True).encode()


def _cut(task: ReviewTask, kept_chars: int) -> ReviewTask:
    return task.model_copy(update={"passages": tuple(_cut_passage(one, kept_chars) for one in task.passages)})


def _cut_passage(passage: TaskPassage, kept_chars: int) -> TaskPassage:
    if len(passage.text) <= kept_chars:
        return passage
    lost = {"text": passage.text[:kept_chars], "cut_chars": len(passage.text) - kept_chars}
    return passage.model_copy(update=lost)
