"""Review tasks for Label Studio: the tasks as it imports them, and the labelling configuration that fits them.

The configuration repeats its controls for every asked sentence, so that a result of an export (JSON, not JSON-MIN) or
of a webhook names its sentence by position: ``from_name`` is ``label_<n>``, ``detail_<n>`` or ``note_<n>``, and the
sentence's index in the answer is ``task["data"]["sentences"][n]["index"]``. The task is ``task["data"]["task_id"]``.
``label_<n>`` and ``detail_<n>`` have one word in ``value.choices``, ``note_<n>`` has lines in ``value.text``.

Our scores go along as a prediction without a result, because a choice that is made already would sway the reviewer.
"""

from __future__ import annotations

from typing import Any

from schemas.review_task import ReviewTask, TaskSentence

CONFIG = """<View>
  <Header value="Question"/>
  <Text name="question" value="$question" valueType="text"/>
  <Header value="Passages"/>
  <Repeater on="$passages" indexFlag="{{idx}}">
    <Text name="passage_{{idx}}" value="$passages[{{idx}}].text" valueType="text"/>
  </Repeater>
  <Header value="Answer"/>
  <Text name="answer" value="$answer" valueType="text"/>
  <Header value="Is each of these sentences supported by the passages?"/>
  <Repeater on="$sentences" indexFlag="{{idx}}">
    <Text name="sentence_{{idx}}" value="$sentences[{{idx}}].text" valueType="text"/>
    <Choices name="label_{{idx}}" toName="sentence_{{idx}}" choice="single-radio" showInline="true">
      <Choice value="supported"/>
      <Choice value="unsupported"/>
      <Choice value="partly"/>
      <Choice value="not_a_claim"/>
      <Choice value="cant_tell"/>
    </Choices>
    <Choices name="detail_{{idx}}" toName="sentence_{{idx}}" choice="single-radio" showInline="true"
        visibleWhen="choice-selected" whenTagName="label_{{idx}}" whenChoiceValue="unsupported">
      <Choice value="baseless"/>
      <Choice value="conflict"/>
    </Choices>
    <TextArea name="note_{{idx}}" toName="sentence_{{idx}}" placeholder="Note" rows="1" maxSubmissions="1"/>
  </Repeater>
</View>
"""


def label_studio_task(task: ReviewTask) -> dict[str, Any]:
    """The task as Label Studio imports it. ``sentences`` are those that are asked about, in the answer's order.

    The prediction's score is the lowest of theirs, so that the lowest come first when sorted by it.
    """
    asked = [sentence for sentence in task.sentences if sentence.asked]
    scores = [sentence.score for sentence in asked if sentence.score is not None]
    prediction = {"model_version": task.scorer, "score": min(scores), "result": []} if scores else None
    return {
        "data": {
            "task_id": str(task.task_id),
            "round": task.round,
            "app": task.app,
            "interaction_id": task.interaction_id,
            "revision": task.revision,
            "question": task.question,
            "passages": [passage.model_dump(include={"position", "id", "text"}) for passage in task.passages],
            "answer": task.answer,
            "sentences": [_sentence(sentence) for sentence in asked],
        },
        "predictions": [prediction] if prediction else [],
    }


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
