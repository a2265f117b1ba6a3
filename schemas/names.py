"""The name of an exchange whose message gives it none, or none that can be stored as it is."""

from __future__ import annotations

import hashlib
import re

import orjson
from pydantic import JsonValue

from schemas.interaction import MAX_ID_CHARS, content_hash
from schemas.payload import JsonObject

_DIGEST_CHARS = 32
_SUFFIX_CHARS = 16

# What makes the content, which has its own hash, and what names the exchange beside its id.
_NOT_FACTS = {"question", "passages", "answer", "answer_marks", "interaction_id", "app"}
# Words in the names of fields that say how often a message was sent, and nothing about the exchange.
_DELIVERY = {"attempt", "attempts", "retry", "retries", "redelivered", "redelivery", "resend", "resent"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")


def derived_id(row: JsonObject) -> str:
    """Return the id of an exchange that has none.

    Made of its content and of everything else that the message says (its time, who asked, where), except how often it
    was sent: the same message again has the same id, and the same words said at another time or to another person have
    another. ``row`` is valid, in native form, with its unstorable characters as the escapes they are written with.
    """
    facts: JsonValue = {
        name: value for name, value in row.items() if name not in _NOT_FACTS and value not in (None, {})
    }
    content = _content_hash(row)
    kept = _without_delivery(facts)
    digest = hashlib.sha256(_bytes([content, kept])).hexdigest() if kept else content
    return f"sha256-{digest[:_DIGEST_CHARS]}"


def suffixed_id(interaction_id: str, spelled_app: JsonValue, spelled_id: JsonValue) -> str:
    """Return an id in which characters were replaced with a suffix that depends on what they were."""
    suffix = hashlib.sha256(_bytes([spelled_app, spelled_id])).hexdigest()[:_SUFFIX_CHARS]
    return f"{interaction_id[: MAX_ID_CHARS - _SUFFIX_CHARS - 1]}~{suffix}"


def _content_hash(row: JsonObject) -> str:
    """The hash that the contract gives the content, of a row that is known to be valid."""
    passages = row["passages"] if isinstance(row["passages"], list) else []
    named = [(str(one["id"]), str(one["text"])) for one in passages if isinstance(one, dict)]
    marked = row.get("answer_marks")
    borders = (
        [(one["start"], one["end"]) for one in marked if isinstance(one, dict)] if isinstance(marked, list) else []
    )
    marks = [(start, end) for start, end in borders if isinstance(start, int) and isinstance(end, int)]
    return content_hash(str(row["question"]), named, str(row["answer"]), marks)


def _without_delivery(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_without_delivery(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_delivery(one) for name, one in value.items() if not _is_of_delivery(name)}
    return {name: one for name, one in kept.items() if one != {}}


def _is_of_delivery(name: str) -> bool:
    return not _DELIVERY.isdisjoint(_WORD.findall(_CAMEL.sub("_", name).lower()))


def _bytes(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
