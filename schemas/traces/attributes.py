"""Single facts in the attributes of a span, under the names that conventions have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.values import as_identifier, as_parsed, as_text

_PEOPLE = {
    "user": (
        *("user.id", "enduser.id", "gen_ai.user", "traceloop.association.properties.user_id"),
        *("ai.telemetry.metadata.userId", "mlflow.trace.user"),
    ),
    "session": (
        *("session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id"),
        *("traceloop.association.properties.conversation_id", "traceloop.association.properties.thread_id"),
        *("ai.telemetry.metadata.sessionId", "ai.observability.conversation_id", "mlflow.trace.session"),
    ),
}
_TAGS = ("tag.tags", "langfuse.trace.tags")


def first_text(attributes: JsonObject, names: Iterable[str]) -> str | None:
    """Return the first text that is not blank under one of the names."""
    texts = (as_text(attributes.get(name)) for name in names)
    return next((text for text in texts if text is not None), None)


def first_given(attributes: JsonObject, names: Iterable[str]) -> JsonValue:
    """Return the first value under one of the names that is not null."""
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def people(attributes: JsonObject) -> JsonObject:
    """Return ``user``, ``session`` and ``tags`` as far as they are known: for the metadata of an exchange."""
    known: JsonObject = {}
    for name, logged_as in _PEOPLE.items():
        found = (as_identifier(as_parsed(attributes.get(one))) for one in logged_as)
        if (one := next((identifier for identifier in found if identifier is not None), None)) is not None:
            known[name] = one
    tags = as_parsed(first_given(attributes, _TAGS))
    return {**known, "tags": tags} if isinstance(tags, list) and tags else known


def numbered(attributes: JsonObject, prefix: str) -> list[JsonObject]:
    """Return what lists are flattened to (``prefix.0.role``), in order of their numbers; further dots stay in names."""
    rows: dict[int, JsonObject] = {}
    pattern = re.compile(rf"{re.escape(prefix)}\.([0-9]{{1,6}})\.(.+)", re.DOTALL)
    for name, value in attributes.items():
        found = pattern.fullmatch(name)
        if found:
            rows.setdefault(int(found[1]), {})[found[2]] = value
    return [row for _, row in sorted(rows.items())]
