"""Chat messages, in every form in which conventions, frameworks and vendors write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.values import as_identifier, as_object, as_text


class Role(StrEnum):
    """Who speaks. A developer is a system; a function, and what a tool gave in a user's message, is a tool."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its texts in order, without the parts that are thoughts, pictures or calls of tools.

    ``calls_tools`` says that the message asks for tools to be run, so that it is no answer yet. ``artifact`` is what a
    tool gave besides its text (LangChain), such as documents.
    """

    role: Role
    texts: tuple[str, ...] = ()
    thoughts: str | None = None
    calls_tools: bool = False
    id: str | None = None
    artifact: JsonValue = None

    @property
    def text(self) -> str:
        """Its texts as one. A model's parts follow each other as they stand; of others each begins a line."""
        return ("" if self.role is Role.ASSISTANT else "\n").join(self.texts)


def read_messages(logged: JsonValue) -> tuple[Message, ...]:
    """Read the messages of a list, of a list of lists, of an object that holds them, or a single one. Never raises.

    What is no message, because nothing says who speaks, is left out.
    """
    return tuple(message for entry in _entries(logged, _MAX_WRAPPERS) if (message := _message(entry)) is not None)


def last_question(messages: Iterable[Message]) -> str | None:
    """Return what the user said last."""
    said = [message.text for message in messages if message.role is Role.USER and message.text.strip()]
    return said[-1] if said else None


def last_answer(messages: Iterable[Message]) -> Message | None:
    """Return the last message in which a model says something, and does not ask for tools to be run first."""
    answers = [
        message
        for message in messages
        if message.role is Role.ASSISTANT and message.text.strip() and not message.calls_tools
    ]
    return answers[-1] if answers else None


# A list of generations for each prompt (LangChain), in an object that is a constructor: four levels, and one to spare.
_MAX_WRAPPERS = 5

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "chatbot": Role.ASSISTANT,
    "bot": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_LISTS = ("messages", "generations", "choices")
_CONTENTS = ("parts", "blocks", "content", "contents", "_content", "text")
_PAIR = 2

_TEXT_PARTS = {"", "text", "input_text", "output_text", "refusal"}
_TEXT_NAMES = ("text", "content", "refusal")
_THOUGHT_PARTS = {"reasoning", "thinking", "thought", "reasoning_content"}
_THOUGHT_NAMES = ("thinking", "reasoning", "reasoning_text", "text", "content")
_CALL_PARTS = {"tool_call", "tool_use", "function_call"}
_RESULT_PARTS = {"tool_call_response", "tool_result", "function_response"}
_RESULT_NAMES = ("response", "result", "content", "output", "text")


def _entries(logged: JsonValue, levels: int) -> Iterator[JsonObject]:
    """The objects that may be messages, out of the lists and wrappers around them."""
    if levels == 0:
        return
    if isinstance(logged, list):
        if (pair := _pair(logged)) is not None:
            yield pair
            return
        for entry in logged:
            yield from _entries(entry, levels - 1)
    elif isinstance(logged, dict):
        logged = unwrapped(logged)
        inner = next((logged[name] for name in _LISTS if isinstance(logged.get(name), list)), None)
        if inner is not None:
            yield from _entries(inner, levels - 1)
        elif isinstance(logged.get("message"), dict):
            yield from _entries(logged["message"], levels - 1)
        else:
            yield logged


def unwrapped(logged: JsonObject) -> JsonObject:
    """Return what a LangChain object holds, dumped as a constructor or as type and data, with the name of its type."""
    if logged.get("type") == "constructor" and isinstance(kwargs := logged.get("kwargs"), dict):
        path = logged.get("id")
        return {"type": path[-1] if isinstance(path, list) and path else None, **kwargs}
    if isinstance(data := logged.get("data"), dict) and _role(logged.get("type")) is not None:
        return {"type": logged["type"], **data}
    return logged


def _pair(logged: list[JsonValue]) -> JsonObject | None:
    """A message as LangChain lets one write it: who speaks, and what."""
    if len(logged) == _PAIR and isinstance(logged[1], str) and _role(logged[0]) is not None:
        return {"role": logged[0], "content": logged[1]}
    return None


def _role(logged: JsonValue) -> Role | None:
    """Who speaks: ``user``, ``USER``, ``MessageRole.USER``, ``HumanMessage``, ``AIMessageChunk``."""
    if not isinstance(logged, str):
        return None
    word = logged.rpartition(".")[2].lower()
    return _ROLES.get(word.removesuffix("chunk").removesuffix("message"))


def _message(logged: JsonObject) -> Message | None:
    names = ("role", "_role", "type")
    role = next((role for name in names if (role := _role(logged.get(name))) is not None), None)
    if role is None:
        return _generation(logged)
    parts = _all_parts(logged)
    message = Message(
        role,
        parts.texts,
        "\n".join((*_own_thoughts(logged), *parts.thoughts)) or None,
        parts.calls or _asks_for_tools(logged),
        as_identifier(logged.get("id")),
        logged.get("artifact"),
    )
    if parts.results and not parts.texts and role in {Role.USER, Role.TOOL}:
        return replace(message, role=Role.TOOL, texts=parts.results)
    return message


def _generation(logged: JsonObject) -> Message | None:
    """What a model that is no chat's gave (LangChain): a text alone."""
    text = logged.get("text")
    return Message(Role.ASSISTANT, (text,)) if isinstance(text, str) and "generation_info" in logged else None


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a message, by what they are."""

    texts: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    calls: bool = False


def _all_parts(logged: JsonObject) -> _Parts:
    """The parts under the first name that holds any; some write a text twice, whole and in parts."""
    for name in _CONTENTS:
        parts = _parts(logged.get(name))
        if parts != _Parts():
            return parts
    return _Parts()


def _parts(content: JsonValue) -> _Parts:
    texts: list[str] = []
    thoughts: list[str] = []
    results: list[str] = []
    calls = False
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = _kind(part)
            texts += _said(part, _TEXT_NAMES) if kind in _TEXT_PARTS else ()
            thoughts += _said(_inner(part), _THOUGHT_NAMES) if kind in _THOUGHT_PARTS else ()
            results += _said(_inner(part), _RESULT_NAMES) if kind in _RESULT_PARTS else ()
            calls = calls or kind in _CALL_PARTS
    return _Parts(tuple(texts), tuple(thoughts), tuple(results), calls)


# Parts that are named by their only key: Bedrock, Gemini, Haystack.
_KEYS = {
    "reasoningContent": "reasoning",
    "reasoning": "reasoning",
    "toolUse": "tool_call",
    "functionCall": "tool_call",
    "function_call": "tool_call",
    "tool_call": "tool_call",
    "toolResult": "tool_result",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
    "tool_call_result": "tool_result",
}


def _kind(part: JsonObject) -> str:
    """What a part is: its type, or the key that it is under; empty if nothing says so."""
    if part.get("thought") is True:
        return "thought"
    for name in ("type", "block_type", "part_kind"):
        if isinstance(kind := part.get(name), str):
            return kind.replace("-", "_").lower()
    return next((kind for key, kind in _KEYS.items() if isinstance(part.get(key), dict)), "")


def _inner(part: JsonObject) -> JsonObject:
    """The part itself, or what lies under the key that names it."""
    inner = next((part[key] for key in _KEYS if isinstance(part.get(key), dict)), part)
    reasoning = as_object(inner.get("reasoningText")) if isinstance(inner, dict) else None
    return reasoning or (inner if isinstance(inner, dict) else part)


def _said(part: JsonObject, names: tuple[str, ...]) -> tuple[str, ...]:
    """The text under the first name that has one; of a list, of its parts."""
    for name in names:
        value = part.get(name)
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, list) and (texts := _texts(value)):
            return texts
    return ()


def _texts(parts: list[JsonValue]) -> tuple[str, ...]:
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return tuple(text for text in texts if isinstance(text, str) and text)


def _own_thoughts(logged: JsonObject) -> tuple[str, ...]:
    """Thoughts that stand beside the content: DeepSeek, vLLM, OpenRouter, Ollama; LangChain and LlamaIndex, deeper."""
    more = as_object(logged.get("additional_kwargs")) or {}
    for fields in (logged, more):
        for name in ("reasoning_content", "reasoning", "thinking"):
            if (thoughts := as_text(fields.get(name))) is not None:
                return (thoughts,)
    return ()


def _asks_for_tools(logged: JsonObject) -> bool:
    more = as_object(logged.get("additional_kwargs")) or {}
    return any(bool(fields.get(name)) for fields in (logged, more) for name in ("tool_calls", "function_call"))
