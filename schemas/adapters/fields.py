"""Renames the fields of a flat row. Which names count is data; what happens to a value is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.passages import is_column, read_passages
from schemas.adapters.refusal import FLAT_ROW, refused
from schemas.adapters.said import Said, read_answer, read_question
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.reject_reason import RejectReason
from schemas.thoughts import THOUGHTS
from schemas.values import as_anything, as_identifier, as_object, as_text, merged

NO_PASSAGES = "missing, where an empty list would say that nothing was found"


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of each field, in order of precedence: the first that holds a usable value is read.

    Lists under ``passage_ids`` and ``passage_scores`` run parallel to the passages.
    """

    interaction_id: tuple[str, ...]
    app: tuple[str, ...]
    occurred_at: tuple[str, ...]
    question: tuple[str, ...]
    passages: tuple[str, ...]
    answer: tuple[str, ...]
    generator_model: tuple[str, ...]
    passage_ids: tuple[str, ...] = ()
    passage_scores: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every name."""
        facts = (*self.interaction_id, *self.app, *self.occurred_at, *self.generator_model)
        return (*facts, *self.question, *self.passages, *self.answer, *self.passage_ids, *self.passage_scores)


def rename(row: JsonObject, names: FieldNames, *, likeness: str = FLAT_ROW) -> JsonObject:
    """Return the row in native form; fields that are not read go into the metadata, so that nothing is lost.

    Null is the same as absent, except that the answer and the passages must be there; a name that holds nothing does
    not hide another one that does. Only question, passages and answer can make a row unusable; a useless value in
    another field is kept as metadata. ``likeness`` is what a row that lacks a field is said to look like.
    Raises UnusablePayload (wrong_shape).
    """
    if not any(name in row for name in names.answer):
        raise refused(row, names.answer[0], "missing", names.all, likeness)
    if not any(name in row for name in names.passages):
        raise refused(row, names.passages[0], NO_PASSAGES, names.all, likeness)
    rest = dict(row)
    question = _take_said(rest, names.question, read_question)
    passages = take_passages(rest, names)
    answer = _take_said(rest, names.answer, read_answer)
    facts = facts_of(rest, names)
    metadata = _take_metadata(rest)
    return {
        **facts,
        "question": question.text,
        "passages": passages,
        "answer": answer.text,
        "interaction_id": facts["interaction_id"] or answer.id,
        "generator_model": facts["generator_model"] or answer.model,
        "metadata": merged(metadata, {THOUGHTS: answer.thoughts}) if answer.thoughts else metadata,
    }


def facts_of(rest: JsonObject, names: FieldNames) -> JsonObject:
    """Take an exchange's id, app, time and model out of a row; None for what it does not say."""
    return {
        "interaction_id": _take(rest, names.interaction_id, as_identifier),
        "app": _take(rest, names.app, as_identifier),
        "occurred_at": _take(rest, names.occurred_at, as_anything),
        "generator_model": _take(rest, names.generator_model, as_text),
    }


def take_passages(rest: JsonObject, names: FieldNames) -> JsonValue:
    """Remove the passages from a row and return them in native form, none if all names are absent or null.

    Raises UnusablePayload (wrong_shape).
    """
    path, passages = _take_filled(rest, names.passages)
    if passages is None:
        return []

    def column(logged: JsonValue) -> JsonValue:
        return logged if is_column(logged, passages) else None

    ids, scores = _take(rest, names.passage_ids, column), _take(rest, names.passage_scores, column)
    return read_passages(passages, path, ids=ids, scores=scores)


def wrong_shape(path: str, rule: str) -> UnusablePayload:
    """Return the rejection that names the field and the rule that it breaks."""
    return UnusablePayload(RejectReason.WRONG_SHAPE, f"{path}: {rule}")


def is_empty(value: JsonValue) -> bool:
    """Whether a value says nothing: null, a blank text, an empty list or object, a list of nothing but such."""
    if isinstance(value, list):
        return all(one is None or (isinstance(one, str) and not one.strip()) for one in value)
    return value is None or value == {} or (isinstance(value, str) and not value.strip())


def _take(rest: JsonObject, names: tuple[str, ...], read: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Remove and return the first value that ``read`` makes something of, else None. Nulls of these names go too."""
    found: JsonValue = None
    for name in names:
        if rest.get(name) is None:
            rest.pop(name, None)
        elif found is None and (found := read(rest[name])) is not None:
            del rest[name]
    return found


def _take_filled(rest: JsonObject, names: tuple[str, ...]) -> tuple[str, JsonValue]:
    """Remove and return the first field that says something, else the first that is not null. All empty ones go."""
    given = [name for name in names if rest.get(name) is not None]
    name = next((name for name in given if not is_empty(rest[name])), given[0] if given else names[0])
    value = rest.pop(name, None)
    for other in names:
        if other in rest and is_empty(rest[other]):
            del rest[other]
    return name, value


def _take_said(rest: JsonObject, names: tuple[str, ...], read: Callable[[JsonValue], Said | None]) -> Said:
    name, value = _take_filled(rest, names)
    if value is None:
        return Said("")
    said = read(value)
    if said is None:
        raise wrong_shape(name, "must be a string")
    return said


def _take_metadata(rest: JsonObject) -> JsonObject:
    metadata = _take(rest, ("metadata",), as_object)
    return merged(metadata if isinstance(metadata, dict) else {}, rest)
