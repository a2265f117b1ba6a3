"""Review tasks for Label Studio: the tasks as it imports them, and the labelling configuration that fits them.

There is a task for each asked sentence, because Label Studio gives a key to every control of that key: with several
sentences on a page one key would label them all. It shows the whole answer with the sentence marked.

A result of an export (JSON, not JSON-MIN) or of a webhook names its sentence by position: ``from_name`` is
``label_<n>``, ``detail_<n>`` or ``note_<n>``, and the sentence's index in the answer is
``task["data"]["sentences"][n]["index"]``. The task is ``task["data"]["task_id"]``. ``label_<n>`` and ``detail_<n>``
have one word in ``value.choices``, ``note_<n>`` has lines in ``value.text``.

Our score goes along as a prediction without a result, because a choice that is made already would sway the reviewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from schemas.review_task import ReviewTask, TaskSentence

_LINE_END = re.compile(r"\r\n|[\r\n]")

CONFIG = """<View>
  <Header value="Question"/>
  <Text name="question" value="$question" valueType="text"/>
  <Header value="Passages"/>
  <Repeater on="$passages" indexFlag="{{idx}}">
    <Text name="passage_{{idx}}" value="$passages[{{idx}}].text" valueType="text"/>
  </Repeater>
  <Header value="Answer"/>
  <HyperText name="answer" value="$answer_marked" valueType="text" inline="true" selectionEnabled="false"/>
  <Header value="Is the marked sentence supported by the passages?"/>
  <Text name="sentence_0" value="$sentences[0].text" valueType="text"/>
  <Choices name="label_0" toName="sentence_0" choice="single-radio" showInline="true">
    <Choice value="supported" hotkey="1"/>
    <Choice value="unsupported" hotkey="2"/>
    <Choice value="partly" hotkey="3"/>
    <Choice value="not_a_claim" hotkey="4"/>
    <Choice value="cant_tell" hotkey="5"/>
  </Choices>
  <Choices name="detail_0" toName="sentence_0" choice="single-radio" showInline="true"
      visibleWhen="choice-selected" whenTagName="label_0" whenChoiceValue="unsupported">
    <Choice value="baseless" hotkey="6"/>
    <Choice value="conflict" hotkey="7"/>
  </Choices>
  <TextArea name="note_0" toName="sentence_0" placeholder="Note" rows="1" maxSubmissions="1"/>
</View>
"""


def label_studio_tasks(task: ReviewTask) -> Iterator[dict[str, Any]]:
    """The task as Label Studio imports it: one for each sentence that is asked about, in the answer's order.

    The prediction's score is the sentence's, so that the lowest come first when sorted by it.
    """
    shared = {
        "task_id": str(task.task_id),
        "round": task.round,
        "app": task.app,
        "interaction_id": task.interaction_id,
        "revision": task.revision,
        "question": task.question,
        "passages": [passage.model_dump(include={"position", "id", "text"}) for passage in task.passages],
        "answer": task.answer,
    }
    for sentence in task.sentences:
        if sentence.asked:
            own = {"answer_marked": marked(task.answer, sentence), "sentences": [_sentence(sentence)]}
            prediction: dict[str, Any] = {"model_version": task.scorer, "score": sentence.score, "result": []}
            yield {"data": shared | own, "predictions": [prediction] if sentence.score is not None else []}


def marked(answer: str, sentence: TaskSentence) -> str:
    """The answer as HTML of which nothing is markup but the mark of the sentence and the ends of lines."""
    before, asked, behind = (
        _LINE_END.sub("<br>", escape(part))
        for part in (answer[: sentence.start], answer[sentence.start : sentence.end], answer[sentence.end :])
    )
    return f"{before}<mark>{asked}</mark>{behind}"


def _sentence(sentence: TaskSentence) -> dict[str, Any]:
    return sentence.model_dump(
        mode="json",
        include={
            "index",
            "start",
            "end",
            "text",
            "score",
            "unsupported_probability",
            "flagged",
            "supporting_passage_position",
            "supporting_passage_id",
            "supporting_passage_positions",
            "support_unlocated",
            "attribution",
            "worst_start",
            "worst_end",
        },
    )
