"""Label Studio: its webhooks, and the tasks of its JSON export.

An annotation labels several sentences: each becomes a judgement ``<annotation id>:<sentence index>``. An annotation
that was changed says all that is left of it, so that first everything is taken back that came in of it before.

A control named ``label_<n>``, ``detail_<n>`` or ``note_<n>`` is about the sentence at position n among those of the
task's data, as we export them. A choice that was made for a span of the answer is about the sentence that it lies in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from schemas.adapters.fields import wrong_shape
from schemas.envelope import JsonObject
from schemas.values import as_identifier

LABEL_STUDIO_TOOL = "label-studio"

_WRITTEN = {"ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"}
_DELETED = {"ANNOTATION_DELETED", "ANNOTATIONS_DELETED"}
_CREATED = {"ANNOTATION_CREATED", "ANNOTATIONS_CREATED"}
_CHOICES = ("choices", "labels")
_CONTROL = re.compile(r"(?P<kind>[A-Za-z]+)[_-](?P<position>[0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class LabelStudioAdapter:
    """Reads a webhook's event about annotations, and a task with its annotations."""

    name: str = "label_studio"

    def matches(self, row: JsonObject) -> bool:
        """Whether it is an event of Label Studio, or a task that it exported."""
        action = row.get("action")
        is_event = isinstance(action, str) and "project" in row and action.isupper()
        return is_event or isinstance(row.get("annotations"), list)

    def adapt(self, row: JsonObject) -> tuple[JsonObject, ...]:
        """Return what the annotations say; nothing for other events. Raises UnusablePayload (wrong_shape)."""
        action = row.get("action")
        annotations = _annotations(row)
        if action in _DELETED:
            return tuple(_withdrawal(annotation) for annotation in annotations)
        if action is not None and action not in _WRITTEN:
            return ()
        task = _task(row)
        return tuple(
            native for annotation in annotations for native in _said(annotation, task, is_new=action in _CREATED)
        )


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


def _annotations(row: JsonObject) -> list[JsonObject]:
    found = row.get("annotations", row.get("annotation"))
    listed = found if isinstance(found, list) else [found]
    return [annotation for annotation in listed if isinstance(annotation, dict)]


def _said(annotation: JsonObject, task: _Task, *, is_new: bool) -> Iterator[JsonObject]:
    """The judgements of an annotation. One that was skipped has none."""
    if not is_new:
        yield _withdrawal(annotation)
    if annotation.get("was_cancelled"):
        return
    for index, judgement in sorted(_judgements(annotation, task).items()):
        if judgement.label is not None:
            yield {
                "tool": LABEL_STUDIO_TOOL,
                "external_id": f"{_id(annotation)}:{index}",
                **task.place,
                "sentence_index": index,
                "label": judgement.label,
                # The control of another choice may have been left filled in.
                "detail": judgement.detail if judgement.label == "unsupported" else None,
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


def _judgements(annotation: JsonObject, task: _Task) -> dict[int, _Judgement]:
    found: dict[int, _Judgement] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(value, dict):
            continue
        control = _CONTROL.fullmatch(str(result.get("from_name", "")))
        judgement = found.setdefault(_sentence(control, value, task), _Judgement())
        chosen = next((value[name] for name in _CHOICES if value.get(name)), None)
        if chosen is None:
            judgement.notes.extend(_texts(value.get("text")))
        elif control and control["kind"] == "detail":
            judgement.detail = _single(chosen)
        else:
            judgement.label = _single(chosen)
    return found


def _sentence(control: re.Match[str] | None, value: JsonObject, task: _Task) -> int:
    """The index of the sentence that a result is about."""
    if control is not None:
        position = int(control["position"])
        if position >= len(task.sentences):
            raise wrong_shape("annotation.result.from_name", "there is no such sentence in task.data.sentences")
        return task.sentences[position].index
    start, end = value.get("start"), value.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise wrong_shape("annotation.result", "is named after no sentence and has no span")
    best = max(task.sentences, key=lambda one: min(end, one.end) - max(start, one.start), default=None)
    if best is None or min(end, best.end) <= max(start, best.start):
        raise wrong_shape("annotation.result.value", "its span lies in no sentence of the task")
    return best.index


def _task(row: JsonObject) -> _Task:
    """The task of an event, or the exported one itself. Its data is what we exported."""
    task = row.get("task", row)
    data = task.get("data") if isinstance(task, dict) else None
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
    for sentence in sentences:
        index, start, end = (
            (sentence.get(name) for name in ("index", "start", "end")) if isinstance(sentence, dict) else (None,) * 3
        )
        if not (isinstance(answer, str) and isinstance(index, int) and isinstance(start, int) and isinstance(end, int)):
            raise wrong_shape("task.data.sentences", "must hold index, start and end of each, beside the answer")
        yield _Sentence(index, _units(answer[:start]), _units(answer[:end]))


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


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
