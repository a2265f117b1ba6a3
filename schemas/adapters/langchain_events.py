"""LangChain's events: what a callback handler is told, an event a row, and the rows of ``astream_events``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.timestamps import epoch_ns
from schemas.traces.contents import with_contents
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Step, StepKind
from schemas.values import as_identifier, as_object, as_text

SYSTEM = "langchain"
"""Whose run ids these are."""

_EVENT = re.compile(
    r"(?:on_)?(?P<what>chain|retriever|llm|chat_model|tool|prompt|parser|agent|custom)_(?P<when>"
    r"start|end|error|stream|new_token|action|finish|event)"
)
_START = "start"
_ERROR = "error"
_KINDS = {
    "chain": StepKind.CHAIN,
    "agent": StepKind.CHAIN,
    "retriever": StepKind.RETRIEVER,
    "llm": StepKind.LLM,
    "chat_model": StepKind.LLM,
}
# Where a handler that does not call it data puts what it was told.
_GIVEN = ("data", "inputs", "query", "messages", "prompts", "input_str", "input")
_GAVE = ("data", "outputs", "documents", "response", "output")
_TIMES = ("timestamp", "time", "ts", "created_at")
# An end whose time the log does not tell.
_UNTIMED = 0
_BY_TIME = 7
_CLIENT = re.compile(r"ls_|lc_|langgraph_|checkpoint_|__")


@dataclass(frozen=True, slots=True)
class LangChainEventsAdapter:
    """Reads single events. Only rows of ``astream_events`` name the run at the root; others name the run above."""

    name: str = "langchain_events"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a known event of a run."""
        event = row.get("event")
        return isinstance(event, str) and _EVENT.fullmatch(event) is not None and "run_id" in row

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the event as a piece, or streamed_part. Raises UnusablePayload (wrong_shape)."""
        event = _EVENT.fullmatch(str(row.get("event")))
        run_id = as_identifier(row.get("run_id"))
        if event is None or run_id is None:
            raise wrong_shape("langchain.run_id", "missing")
        if event["when"] not in (_START, "end", _ERROR):
            return (SkipReason.STREAMED_PART,)
        above = _above(row)
        step = _step(row, event, run_id, above[-1] if above else None)
        if isinstance(row.get("parent_ids"), list):
            return (Piece(TraceKey(SYSTEM, above[0] if above else run_id), (step,), self.name),)
        return (Piece(TraceKey(SYSTEM, run_id), (step,), self.name, within=step.parent),)


def _above(row: JsonObject) -> list[str]:
    """The runs above, from the root down, or the lowest of them alone."""
    listed = row.get("parent_ids")
    if isinstance(listed, list):
        return [above for one in listed if (above := as_identifier(one)) is not None]
    if "parent_run_id" not in row:
        # The streams of JavaScript name no run but their own.
        raise wrong_shape("langchain.parent_run_id", "missing, and no parent_ids")
    parent = as_identifier(row["parent_run_id"])
    return [] if parent is None else [parent]


def _step(row: JsonObject, event: re.Match[str], run_id: str, parent: str | None) -> Step:
    begins, failed = event["when"] == _START, event["when"] == _ERROR
    told_ns = next((moment for name in _TIMES if (moment := epoch_ns(row.get(name))) is not None), None)
    facts = as_object(row.get("metadata")) or {}
    step = Step(
        id=run_id,
        order=(0 if begins else 1, told_ns or 0),
        parent=parent,
        is_root=parent is None,
        kind=_KINDS.get(event["what"], StepKind.OTHER),
        begun_ns=told_ns if begins and told_ns else _begun_ns(run_id),
        ended_ns=None if begins else told_ns or _UNTIMED,
        has_failed=None if begins else failed,
        model=as_text(facts.get("ls_model_name")),
        metadata=_metadata(row, facts) if parent is None else {},
    )
    given, gave = _contents(row, begins=begins)
    return with_contents(step, given, None if begins or failed else gave, name=as_text(row.get("name")))


def _contents(row: JsonObject, *, begins: bool) -> tuple[JsonValue, JsonValue]:
    """What the run was given, and what it gave: a stream has both under their names, a handler is told one or other."""
    data = row.get("data")
    if "parent_ids" in row and isinstance(data, dict):
        return data.get("input"), data.get("output")
    told = next((row[name] for name in (_GIVEN if begins else _GAVE) if row.get(name) is not None), None)
    return (told, None) if begins else (None, told)


def _begun_ns(run_id: str) -> int | None:
    """When the run began, if its id says so: UUIDs of version 7 begin with the milliseconds."""
    try:
        uuid = UUID(run_id)
    except ValueError:
        return None
    return (uuid.int >> 80) * 1_000_000 if uuid.version == _BY_TIME else None


def _metadata(row: JsonObject, facts: JsonObject) -> JsonObject:
    """Tags, and what the program has said of the exchange."""
    said: JsonObject = {name: value for name, value in facts.items() if not _CLIENT.match(name)}
    said["tags"] = row.get("tags") or None
    return {name: value for name, value in said.items() if value is not None}
