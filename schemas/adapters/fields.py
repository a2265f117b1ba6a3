"""Renames the fields of a flat row. Which names count is data; what happens to a value is the same for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.errors import UnusablePayload
from schemas.interaction import MAX_PASSAGES
from schemas.reject_reason import RejectReason
from schemas.values import as_anything, as_identifier, as_number, as_object, as_text, merged


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of each field, in order of precedence: the first that holds a usable value is read."""

    interaction_id: tuple[str, ...]
    app: tuple[str, ...]
    occurred_at: tuple[str, ...]
    question: tuple[str, ...]
    passages: tuple[str, ...]
    answer: tuple[str, ...]
    generator_model: tuple[str, ...]
    passage_id: tuple[str, ...]
    passage_text: tuple[str, ...]
    passage_score: tuple[str, ...]
    passage_metadata: tuple[str, ...]


def rename(row: JsonObject, names: FieldNames) -> JsonObject:
    """Return the row in native form; fields that are not read go into the metadata, so that nothing is lost.

    Null is the same as absent, except that the answer must be there. Only question, passages and answer can make a
    row unusable; a useless value in another field is kept as metadata. Raises UnusablePayload (wrong_shape).
    """
    if not any(name in row for name in names.answer):
        raise wrong_shape(names.answer[0], "missing")
    rest = dict(row)
    native: JsonObject = {
        "question": _take_text(rest, names.question, path=""),
        "passages": _take_passages(rest, names),
        "answer": _take_text(rest, names.answer, path=""),
        "interaction_id": _take(rest, names.interaction_id, as_identifier),
        "app": _take(rest, names.app, as_identifier),
        "occurred_at": _take(rest, names.occurred_at, as_anything),
        "generator_model": _take(rest, names.generator_model, as_text),
    }
    native["metadata"] = _take_metadata(rest, ("metadata",))
    return native


def wrong_shape(path: str, rule: str) -> UnusablePayload:
    """Return the rejection that names the field and the rule that it breaks."""
    return UnusablePayload(RejectReason.WRONG_SHAPE, f"{path}: {rule}")


def _take(rest: JsonObject, names: tuple[str, ...], read: Callable[[JsonValue], JsonValue]) -> JsonValue:
    """Remove and return the first value that ``read`` makes something of, else None. Nulls of these names go too."""
    found: JsonValue = None
    for name in names:
        if rest.get(name) is None:
            rest.pop(name, None)
        elif found is None and (found := read(rest[name])) is not None:
            del rest[name]
    return found


def _take_text(rest: JsonObject, names: tuple[str, ...], *, path: str) -> str:
    name = _first_given(rest, names)
    text = _take(rest, names, as_anything)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise wrong_shape(f"{path}{name}", "must be a string")
    return text


def _take_passages(rest: JsonObject, names: FieldNames) -> JsonValue:
    path = _first_given(rest, names.passages)
    passages = _take(rest, names.passages, as_anything)
    if passages is None:
        return []
    if isinstance(passages, str):
        passages = [passages]
    if not isinstance(passages, list):
        raise wrong_shape(path, "must be a list or a string")
    if len(passages) > MAX_PASSAGES:
        raise wrong_shape(path, f"must hold at most {MAX_PASSAGES} passages")
    return [_passage(passage, names, f"{path}.{index}", index + 1) for index, passage in enumerate(passages)]


def _passage(logged: JsonValue, names: FieldNames, path: str, number: int) -> JsonValue:
    """Return one passage in native form; one without text (null) is kept as a blank, to keep the positions."""
    if logged is None or isinstance(logged, str):
        return {"id": f"ctx-{number}", "text": logged or ""}
    if not isinstance(logged, dict):
        raise wrong_shape(path, "must be a string or an object")
    if not any(name in logged for name in names.passage_text):
        raise wrong_shape(f"{path}.{names.passage_text[0]}", "missing")
    rest = dict(logged)
    passage: JsonObject = {
        "text": _take_text(rest, names.passage_text, path=f"{path}."),
        "id": _take(rest, names.passage_id, as_identifier) or f"ctx-{number}",
        "score": _take(rest, names.passage_score, as_number),
    }
    passage["metadata"] = _take_metadata(rest, names.passage_metadata)
    return passage


def _take_metadata(rest: JsonObject, names: tuple[str, ...]) -> JsonObject:
    metadata = _take(rest, names, as_object)
    return merged(metadata if isinstance(metadata, dict) else {}, rest)


def _first_given(rest: JsonObject, names: tuple[str, ...]) -> str:
    return next((name for name in names if rest.get(name) is not None), names[0])
