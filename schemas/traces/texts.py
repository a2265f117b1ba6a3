"""The question in what a step was given, and the answer in what it gave, under the names that programs use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.documents import LIST_NAMES, looks_retrieved
from schemas.traces.messages import Message, Role, last_answer, last_question, read_messages
from schemas.values import as_parsed, as_text

_T = TypeVar("_T")


def question_in(given: JsonValue) -> str | None:
    """Return the question in the inputs of a step: a text, messages, or fields of which one has a usual name.

    JSON in strings is read. None if there is no question, or if it is not clear which of several texts it is.
    """
    return _question(given, _MAX_LEVELS)


def answer_in(given: JsonValue) -> Message | None:
    """Return the answer in the outputs of a step, with the thoughts that stand apart from it; None as for questions."""
    return _answer(given, _MAX_LEVELS)


# JSON in JSON, arguments in keyword arguments, components in data: none goes deeper.
_MAX_LEVELS = 6

_QUESTIONS = (
    *("question", "query", "user_input", "input", "user_query", "query_str", "str_or_query_bundle", "query_bundle"),
    *("user_message", "message", "chat_input", "inputs", "text", "prompt"),
)
_COMPONENT_QUESTIONS = ("question", "query", "text")
_ANSWERS = (
    *("answer", "result", "output", "outputs", "response", "content", "output_text", "completion", "generated_text"),
    *("text", "message", "return_values", "final_answer", "final_output", "raw"),
)
# An object by its class, in angles, or by its fields; a list or a dictionary, also in JSON that was cut.
_PRINTED = re.compile(
    r"""\s*(?:[A-Z]\w*[(]\s*\w+=['"<\[{]|<[^<>]*(?:<[^<>]*>[^<>]*)*>\s*\Z|(?:page_)?content=['"]|[\[{]\s*(?:[{\["']|\Z))"""
)
_COMPONENT_ANSWERS = ("answers", "replies", "answer")
_IS_NO_ANSWER = {*_QUESTIONS, "context", *LIST_NAMES} - {*_ANSWERS}
# An answer of Haystack has its text under this name; a pipeline has its components there.
_DATA = "data"


def _question(given: JsonValue, levels: int) -> str | None:
    given = as_parsed(given)
    if isinstance(given, str):
        return _told(given)
    if not levels or not given or not isinstance(given, dict | list):
        return None
    messages = read_messages(given)
    if messages:
        return last_question(messages)
    if isinstance(given, list):
        return _question(given[0], levels - 1) if len(given) == 1 and not looks_retrieved(given) else None
    return _named_question(given, levels) or _agreed(given, _COMPONENT_QUESTIONS, lambda held: _question(held, 0))


def _named_question(given: JsonObject, levels: int) -> str | None:
    arguments = given.get("args")
    candidates = (
        *(given.get(name) for name in _QUESTIONS),
        *(arguments if isinstance(arguments, list) else ()),
        # Beside other names these are the options of a framework.
        given.get("kwargs") if "args" in given else None,
    )
    found = (_question(candidate, levels - 1) for candidate in candidates if candidate is not None)
    return next((question for question in found if question is not None), None) or _only_text(given)


def _answer(given: JsonValue, levels: int) -> Message | None:
    given = as_parsed(given)
    if isinstance(given, str):
        return None if _told(given) is None else Message(Role.ASSISTANT, (given,))
    if not levels or not given or not isinstance(given, dict | list):
        return None
    messages = read_messages(given)
    if messages:
        return last_answer(messages)
    if isinstance(given, list):
        return _answer(given[0], levels - 1) if len(given) == 1 and not looks_retrieved(given) else None
    return _named_answer(given, levels) or _agreed(given, _COMPONENT_ANSWERS, lambda held: _answer(held, levels - 1))


def _named_answer(given: JsonObject, levels: int) -> Message | None:
    names = (*_ANSWERS, *_COMPONENT_ANSWERS)
    found = (_answer(given[name], levels - 1) for name in names if given.get(name) is not None)
    alone = _only_text(given) if len(given) == 1 and not _IS_NO_ANSWER & given.keys() else _told(given.get(_DATA))
    return next((answer for answer in found if answer is not None), None) or _answer(alone, 0)


def _only_text(given: JsonObject) -> str | None:
    """The only text in an object, whatever its name: the argument of a function, the value that it gave."""
    texts = [text for value in given.values() if (text := _told(value)) is not None]
    return texts[0] if len(texts) == 1 else None


def _told(value: JsonValue) -> str | None:
    """A text that a person would read: none that is cut JSON, nor what Python prints of an object."""
    text = as_text(value)
    return None if text is None or _PRINTED.match(text) else text


def _agreed(given: JsonObject, names: tuple[str, ...], read: Callable[[JsonValue], _T | None]) -> _T | None:
    """What the components of a pipeline (Haystack) were given or gave, if all that have it have the same."""
    components = as_parsed(given.get(_DATA))
    found = [*_held(components if isinstance(components, dict) else given, names)]
    read_all = [value for one in found if (value := read(one)) is not None]
    return read_all[0] if read_all and all(value == read_all[0] for value in read_all) else None


def _held(components: JsonObject, names: tuple[str, ...]) -> Iterator[JsonValue]:
    for component in components.values():
        if isinstance(component, dict):
            yield from (component[name] for name in names if component.get(name) is not None)
