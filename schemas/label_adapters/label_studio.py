"""Label Studio: its webhooks, and the tasks of its JSON export.

An annotation labels several sentences: each becomes a judgement ``<annotation id>:<sentence index>``. An annotation
that was changed says all that is left of it, so that first everything is taken back that came in of it before.

A control named ``label_<n>``, ``detail_<n>`` or ``note_<n>`` is about the sentence at position n among those of the
task's data, as we export them. A label that was chosen for a span of the answer is about the sentence that it lies in.
Whatever else a project asks its people (a rating, a choice over the whole answer) is passed over and counted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from schemas.adapters.fields import wrong_shape
from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload
from schemas.label_adapters.adapter import Adapted
from schemas.review_label import Label, label_words
from schemas.values import as_identifier

LABEL_STUDIO_TOOL = "label-studio"

_WRITTEN = {"ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"}
_DELETED = {"ANNOTATION_DELETED", "ANNOTATIONS_DELETED"}
_CREATED = {"ANNOTATION_CREATED", "ANNOTATIONS_CREATED"}
_CHOICES = ("choices", "labels")
_CONTROL = re.compile(r"(?P<kind>label|detail|note)[_-](?P<position>[0-9]{1,6})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LabelStudioAdapter:
    """Reads a webhook's event about annotations, and a task with its annotations."""

    name: str = "label_studio"

    def matches(self, row: JsonObject) -> bool:
        """Whether it is an event of Label Studio, or a task that it exported."""
        action = row.get("action")
        is_event = isinstance(action, str) and "project" in row and action.isupper()
        return is_event or isinstance(row.get("annotations"), list)

    def adapt(self, row: JsonObject) -> Adapted:
        """Return what the annotations say; nothing for other events. Raises UnusablePayload (wrong_shape).

        An annotation that cannot be read keeps no other from being read.
        """
        action = row.get("action")
        if action is not None and action not in _WRITTEN | _DELETED:
            return Adapted()
        annotations = _listed(row.get("annotations", row.get("annotation")))
        tasks = {} if action in _DELETED else _tasks_of(annotations, row)
        said, faults = [], []
        for position, annotation in enumerate(annotations):
            try:
                said.append(_said(annotation, tasks.get(position), action))
            except UnusablePayload as unusable:
                faults.append(unusable)
        bundles = tuple(one.rows for one in said if one.rows)
        return Adapted(bundles, tuple(faults), sum(one.passed_over for one in said))


@dataclass(frozen=True, slots=True)
class _Said:
    """The rows of one annotation, and how much of it is not about our labels."""

    rows: tuple[JsonObject, ...]
    passed_over: int = 0


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence of the task's data, its span in UTF-16 units as browsers count."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Task:
    """Where the task leads, and its sentences by position."""

    place: JsonObject
    sentences: tuple[_Sentence, ...] = ()


@dataclass(slots=True)
class _Judgement:
    label: str | None = None
    detail: str | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    """What an annotation says, by the index of the sentence."""

    judgements: dict[int, _Judgement] = field(default_factory=dict)
    passed_over: int = 0

    def of(self, index: int) -> _Judgement:
        return self.judgements.setdefault(index, _Judgement())


def _listed(found: JsonValue) -> list[JsonObject]:
    return [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict)]


def _tasks_of(annotations: Sequence[JsonObject], row: JsonObject) -> dict[int, JsonObject]:
    """The task of each annotation by its position, as far as there is one.

    An event has one task, or a list beside a list of annotations; an exported task is its own. Of several it is the
    one that the annotation names by its id, otherwise the one in its place.
    """
    tasks = _listed(row.get("task", row.get("tasks", row)))
    if len(tasks) == 1:
        return dict.fromkeys(range(len(annotations)), tasks[0])
    by_id = {as_identifier(task.get("id")): task for task in tasks}
    in_place = tasks if len(tasks) == len(annotations) else []
    found = {}
    for position, annotation in enumerate(annotations):
        named = as_identifier(annotation.get("task"))
        task = by_id.get(named) if named is not None else next(iter(in_place[position : position + 1]), None)
        if task is not None:
            found[position] = task
    return found


def _said(annotation: JsonObject, task: JsonObject | None, action: JsonValue) -> _Said:
    """The judgements of an annotation. One that was skipped has none."""
    rows = [] if action in _CREATED else [_withdrawal(annotation)]
    if action in _DELETED or annotation.get("was_cancelled"):
        return _Said(tuple(rows))
    read = _task(task)
    found = _found(annotation, read)
    for index, judgement in sorted(found.judgements.items()):
        if judgement.label is not None:
            rows.append(_row(annotation, read, index, judgement))
    return _Said(tuple(rows), found.passed_over)


def _row(annotation: JsonObject, task: _Task, index: int, judgement: _Judgement) -> JsonObject:
    return {
        "tool": LABEL_STUDIO_TOOL,
        "external_id": f"{_id(annotation)}:{index}",
        **task.place,
        "sentence_index": index,
        "label": judgement.label,
        # The control of another choice may have been left filled in.
        "detail": judgement.detail if judgement.label == Label.UNSUPPORTED else None,
        "note": "\n".join(judgement.notes) or None,
        "reviewer": _reviewer(annotation),
        "labelled_at": _time(annotation),
    }


def _withdrawal(annotation: JsonObject) -> JsonObject:
    return {
        "tool": LABEL_STUDIO_TOOL,
        "external_id": _id(annotation),
        "action": "withdraw",
        "labelled_at": _time(annotation),
    }


def _found(annotation: JsonObject, task: _Task) -> _Found:
    found = _Found()
    results = annotation.get("result")
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        control = _CONTROL.fullmatch(str(result.get("from_name", ""))) if isinstance(result, dict) else None
        if not isinstance(value, dict):
            found.passed_over += 1
        elif control is not None:
            _take(found.of(_named_sentence(control, task)), control["kind"].lower(), value)
        elif (start_end := _labelled_span(value)) is not None:
            found.of(_sentence_of_span(*start_end, task)).label = _single(_chosen(value))
        else:
            found.passed_over += 1
    return found


def _take(judgement: _Judgement, kind: str, value: JsonObject) -> None:
    chosen = _chosen(value)
    if kind == "note":
        judgement.notes.extend(_texts(value.get("text")))
    elif chosen and kind == "detail":
        judgement.detail = _single(chosen)
    elif chosen:
        judgement.label = _single(chosen)


def _chosen(value: JsonObject) -> JsonValue:
    return next((value[name] for name in _CHOICES if value.get(name)), None)


def _labelled_span(value: JsonObject) -> tuple[int, int] | None:
    """The span that one of our labels was chosen for; None if it is no span, or marked with other words."""
    chosen, start, end = _chosen(value), value.get("start"), value.get("end")
    words = [one for one in (chosen if isinstance(chosen, list) else [chosen]) if isinstance(one, str)]
    is_ours = any(label_words(word)[0] in set(Label) for word in words)
    return (start, end) if is_ours and isinstance(start, int) and isinstance(end, int) else None


def _named_sentence(control: re.Match[str], task: _Task) -> int:
    """The index of the sentence that a control is named after."""
    position = int(control["position"])
    if position >= len(task.sentences):
        raise wrong_shape("annotation.result.from_name", "there is no such sentence in task.data.sentences")
    return task.sentences[position].index


def _sentence_of_span(start: int, end: int, task: _Task) -> int:
    """The index of the sentence that shares most with the span."""
    best = max(task.sentences, key=lambda one: min(end, one.end) - max(start, one.start), default=None)
    if best is None or min(end, best.end) <= max(start, best.start):
        raise wrong_shape("annotation.result.value", "its span lies in no sentence of the task")
    return best.index


def _task(task: JsonObject | None) -> _Task:
    """Its data is what we exported."""
    data = task.get("data") if task is not None else None
    if not isinstance(data, dict):
        raise wrong_shape("task.data", "missing")
    # All of it: the answer is found by the others where nobody knows the task, as after a backup was restored.
    revision = data.get("revision")
    place: JsonObject = {
        "task_id": data.get("task_id"),
        "app": as_identifier(data.get("app")),
        "interaction_id": as_identifier(data.get("interaction_id")),
        "revision": revision if isinstance(revision, int) else None,
    }
    sentences = data.get("sentences")
    return _Task(place, tuple(_sentences(data, sentences if isinstance(sentences, list) else [])))


def _sentences(data: JsonObject, sentences: list[JsonValue]) -> Iterator[_Sentence]:
    """From code points, in which we count, to UTF-16 units, in which a browser does."""
    answer = data.get("answer")
    text = answer if isinstance(answer, str) else ""
    # A browser counts two for each of these.
    doubles = [position for position, character in enumerate(text) if character > "\uffff"]
    for sentence in sentences:
        index, start, end = (
            (sentence.get(name) for name in ("index", "start", "end")) if isinstance(sentence, dict) else (None,) * 3
        )
        if not (isinstance(answer, str) and isinstance(index, int) and isinstance(start, int) and isinstance(end, int)):
            raise wrong_shape("task.data.sentences", "must hold index, start and end of each, beside the answer")
        yield _Sentence(index, start + bisect_left(doubles, start), end + bisect_left(doubles, end))


def _id(annotation: JsonObject) -> str:
    found = as_identifier(annotation.get("id"))
    if found is None:
        raise wrong_shape("annotation.id", "missing")
    return found


def _reviewer(annotation: JsonObject) -> JsonValue:
    """A user's number, or an object with an address, by version and kind of export."""
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return as_identifier(by.get("email")) or as_identifier(by.get("id"))
    return as_identifier(by)


def _time(annotation: JsonObject) -> JsonValue:
    return annotation.get("updated_at") or annotation.get("created_at")


def _single(chosen: JsonValue) -> str:
    if isinstance(chosen, str):
        return chosen
    if isinstance(chosen, list) and len(chosen) == 1 and isinstance(chosen[0], str):
        return chosen[0]
    raise wrong_shape("annotation.result.value.choices", "must hold one choice")


def _texts(text: JsonValue) -> Sequence[str]:
    listed = text if isinstance(text, list) else [text]
    return [one for one in listed if isinstance(one, str)]
