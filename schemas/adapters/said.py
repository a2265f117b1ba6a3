"""What a field for a question or an answer says: a text, or a message in any form that a framework dumps it in."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.printed import printed_object
from schemas.traces.messages import Message, Role, last_answer, last_question, read_messages, unwrapped
from schemas.values import as_object, as_text


@dataclass(frozen=True, slots=True)
class Said:
    """A text, and what a message says beside it: the model's thoughts, the message's id, the model."""

    text: str
    thoughts: str | None = None
    id: str | None = None
    model: str | None = None


def read_answer(logged: JsonValue) -> Said | None:
    """Return what an answer says: of a list of messages the last one that a model answered with.

    None if nothing is read. A list of several texts is none: it cannot be told which of them was shown.
    """
    if isinstance(logged, str):
        return _printed(logged)
    message = last_answer(read_messages(_messages(logged, Role.ASSISTANT)))
    return Said(message.text, message.thoughts, message.id, model_of(logged)) if message else None


def read_question(logged: JsonValue) -> Said | None:
    """Return what a question says: of a list of messages the last one of the user. None if nothing is read."""
    if isinstance(logged, str):
        return _printed(logged)
    text = last_question(read_messages(_messages(logged, Role.USER)))
    return Said(text) if text is not None else None


def model_of(logged: JsonValue) -> str | None:
    """Return the model that a message of LangChain or LlamaIndex names, or the answer of a vendor."""
    if isinstance(logged, list):
        return next((model for one in reversed(logged) if (model := model_of(one)) is not None), None)
    if not isinstance(logged, dict):
        return None
    message = unwrapped(logged)
    about = as_object(message.get("response_metadata")) or as_object(message.get("meta")) or {}
    names = ("model_name", "model", "model_id")
    return next(
        (text for name in names if (text := as_text(about.get(name))) is not None), as_text(message.get("model"))
    )


def _printed(logged: str) -> Said | None:
    """A text as it is, or the content of a message that Python printed; None for one that was cut off."""
    if not logged.startswith(("content='", 'content="', "content=[", "AIMessage(content=", "HumanMessage(content=")):
        return Said(logged)
    fields = printed_object(logged, needs="content")
    if fields is None:
        return None if _is_cut(logged) else Said(logged)
    about = {**fields, "type": "ai"}
    message: Message | None = next(iter(read_messages(about)), None)
    return Said(message.text, message.thoughts, message.id, model_of(about)) if message else None


def _is_cut(logged: str) -> bool:
    return " additional_kwargs=" in logged


def _messages(logged: JsonValue, role: Role) -> JsonValue:
    """The messages of a field; the parts of a message stand for a message of the one who speaks there."""
    if isinstance(logged, dict) and _is_part(logged):
        return {"role": role, "content": [logged]}
    if isinstance(logged, list) and logged and all(isinstance(one, dict) and _is_part(one) for one in logged):
        return {"role": role, "content": logged}
    if isinstance(logged, list) and len(logged) == 1 and isinstance(logged[0], str):
        return {"role": role, "content": logged}
    return logged


_PARTS = ("text", "input_text", "output_text", "thinking", "reasoning", "refusal", "image", "image_url", "input_image")


def _is_part(logged: JsonObject) -> bool:
    return logged.get("type") in _PARTS and not isinstance(logged.get("role"), str)
