"""What a reasoning model thought before it answered, where a log has it in front of the answer that was shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.payload import JsonObject

THOUGHTS = "thoughts"
"""The name under which they are kept in an exchange's metadata."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer taken apart: what was shown, what was thought, and where in the logged text the shown part begins."""

    text: str
    thoughts: str | None = None
    start: int = 0


def _block(opening: str, closing: str) -> re.Pattern[str]:
    """How a family of models marks its thoughts: matches both marks, of which the opening one has a group ``open``."""
    return re.compile(f"(?P<open>{opening})|{closing}", re.IGNORECASE)


_WORDS = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think")
_BLOCKS = (
    # DeepSeek, Qwen and most others; words in a tag are rare and short.
    *(_block(rf"<{word}(?:\s[^<>]{{0,100}})?>", rf"</{word}\s{{0,8}}>") for word in _WORDS),
    # Magistral, Kimi, OpenThoughts.
    _block(r"\[THINK\]", r"\[/THINK\]"),
    _block("◁think▷", "◁/think▷"),
    _block(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    # gpt-oss, whose answer begins with the channel named final.
    _block(
        r"<\|channel\|>analysis<\|message\|>",
        r"(?:<\|end\|>)?<\|start\|>assistant<\|channel\|>final<\|message\|>",
    ),
    # Open WebUI.
    _block(r"<details\s[^<>]{0,100}?type=\"reasoning\"[^<>]{0,100}>", r"</details>"),
)
# Templates that open the block in the prompt leave only its end in the answer. It stands alone on its line.
_CLOSING = re.compile(r"[ \t]*+</(?:think|thinking)>[ \t]*+$", re.IGNORECASE | re.MULTILINE)
_UNOPENED = re.compile(f"^{_CLOSING.pattern}", re.IGNORECASE | re.MULTILINE)


def shown_part(logged: str) -> Shown:
    """Take what was thought off the beginning of an answer, in time linear in its length.

    A block that another one is nested in ends with the outer one; a block that does not end reaches as far as the
    text. The result holds nothing more to be taken off.
    """
    thoughts: list[str] = []
    start = 0
    while (found := _leading(logged, start) or _unopened(logged, start)) is not None:
        thought, start = found
        thoughts.append(thought)
    if start == 0:
        return Shown(logged)
    return Shown(logged[start:], "\n".join(thought for thought in thoughts if thought) or None, start)


def with_thoughts_apart(native: JsonObject) -> JsonObject:
    """Return an exchange in native form with the thoughts that its answer begins with in its metadata."""
    answer = native.get("answer")
    shown = shown_part(answer) if isinstance(answer, str) else Shown("")
    if shown.start == 0:
        return native
    apart: JsonObject = {**native, "answer": shown.text}
    if "answer_marks" in native:
        apart["answer_marks"] = _moved(native["answer_marks"], shown.start)
    metadata = native.get("metadata")
    known: JsonObject = metadata if isinstance(metadata, dict) else {}
    earlier = known.get(THOUGHTS)
    texts = (earlier if isinstance(earlier, str) else None, shown.thoughts)
    thoughts = "\n".join(text for text in texts if text)
    return {**apart, "metadata": {**known, **({THOUGHTS: thoughts} if thoughts else {})}}


def _leading(logged: str, start: int) -> tuple[str, int] | None:
    """The thought that begins at ``start``, but for blanks, and where the text behind it begins."""
    begin = _behind_blanks(logged, start)
    for block in _BLOCKS:
        opened = block.match(logged, begin)
        if opened is not None and opened["open"]:
            inner, end = _extent(block, logged, opened.end())
            return logged[opened.end() : inner].strip(), _behind_blanks(logged, end)
    return None


def _extent(block: re.Pattern[str], logged: str, start: int) -> tuple[int, int]:
    """Where a block's inside and the block itself end.

    Without a mark that closes it, a block of which a nested one is closed ends there: text may name an opening mark.
    """
    depth = 1
    last = (len(logged), len(logged))
    for tag in block.finditer(logged, start):
        depth += 1 if tag["open"] else -1
        if not tag["open"]:
            last = tag.span()
        if depth == 0:
            break
    return last


def _unopened(logged: str, start: int) -> tuple[str, int] | None:
    closed = _CLOSING.match(logged, start) or _UNOPENED.search(logged, start)
    return (logged[start : closed.start()].strip(), _behind_blanks(logged, closed.end())) if closed else None


_BLANKS = re.compile(r"\s*+")


def _behind_blanks(logged: str, start: int) -> int:
    blanks = _BLANKS.match(logged, start)
    return blanks.end() if blanks else start


def _moved(marks: JsonValue, by: int) -> JsonValue:
    """Spans of the logged answer as spans of what was shown; those of thoughts are gone, and what is no span stays."""
    if not isinstance(marks, list):
        return marks
    moved: list[JsonValue] = []
    for mark in marks:
        start, end = (mark.get("start"), mark.get("end")) if isinstance(mark, dict) else (None, None)
        if not isinstance(mark, dict) or not isinstance(start, int) or not isinstance(end, int):
            moved.append(mark)
        elif start >= by:
            moved.append({**mark, "start": start - by, "end": end - by})
    return moved
