"""LangSmith's runs: as its clients post them, as its API lists them, and as rows of its bulk export."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import wrong_shape
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.timestamps import epoch_ns
from schemas.traces.contents import with_contents
from schemas.traces.conventions.langsmith import COMMON, KINDS, OF_CLIENT
from schemas.traces.piece import pieces_of
from schemas.traces.step import Step, StepKind
from schemas.values import as_identifier, as_object, as_parsed, as_text

SYSTEM = "langsmith"
"""Whose trace ids these are."""

_BATCH = {"post", "patch"}
_LISTED = "runs"
_LISTING = {_LISTED, "cursors", "search_cursors", "parsed_query"}
_RUN_TYPES = {*KINDS, "tool", "prompt", "parser", "embedding"}
# What stands beside the type of a run in one or the other way of writing one.
_BESIDE = ("trace_id", "parent_run_id", "session_name", "session_id", "child_runs", "dotted_order")
# The place of a run in its trace: times and ids from the root down.
_PLACE = r"[0-9]{8}T[0-9]{9,12}Z[0-9a-fA-F-]{36}"
_DOTTED = re.compile(rf"{_PLACE}(?:\.{_PLACE})*+")
_ID_CHARS = 36
_ELSEWHERE = "_s3_urls"


@dataclass(frozen=True, slots=True)
class LangSmithAdapter:
    """Reads batches, lists of runs, and single runs, also with their child runs in them."""

    name: str = "langsmith"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a run, or holds lists of runs and nothing else."""
        listed = _listed(row)
        return _is_run(row) if listed is None else all(_is_run(run) for run in listed)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give a piece for each trace, or not_rag for a batch without runs. Raises UnusablePayload (wrong_shape)."""
        listed = _listed(row)
        runs = _with_children([row] if listed is None else listed)
        return pieces_of(SYSTEM, map(_step, runs), self.name) or (SkipReason.NOT_RAG,)


def _listed(row: JsonObject) -> list[JsonValue] | None:
    """The runs of a batch, or of an answer of the API; None if the row is neither."""
    if row and row.keys() <= _BATCH:
        lists = list(row.values())
    elif _LISTED in row and row.keys() <= _LISTING:
        lists = [row[_LISTED]]
    else:
        return None
    return [run for runs in lists if isinstance(runs, list) for run in runs]


def _is_run(row: JsonValue) -> bool:
    if not isinstance(row, dict) or as_identifier(row.get("id")) is None:
        return False
    if str(row.get("run_type")) in _RUN_TYPES:
        return any(name in row for name in _BESIDE)
    return bool(_places(row))


def _places(run: JsonObject) -> list[str]:
    """The ids of the runs from the root down to this one; empty if the run does not say."""
    dotted = run.get("dotted_order")
    if not isinstance(dotted, str) or not _DOTTED.fullmatch(dotted):
        return []
    return [place[-_ID_CHARS:] for place in dotted.split(".")]


def _with_children(runs: Iterable[JsonValue]) -> Iterator[JsonObject]:
    ahead = deque(runs)
    while ahead:
        run = ahead.popleft()
        if isinstance(run, dict):
            yield run
            children = run.get("child_runs")
            ahead += children if isinstance(children, list) else []


def _step(run: JsonObject) -> tuple[str, Step]:
    """The trace of a run, and what the run says. Its start and its end may be posted apart."""
    run_id, trace_id, parent = _ids(run)
    begun_ns, ended_ns = epoch_ns(run.get("start_time")), epoch_ns(run.get("end_time"))
    extra = as_object(as_parsed(run.get("extra"))) or {}
    facts = as_object(extra.get("metadata")) or {}
    step = Step(
        id=run_id,
        order=(0, begun_ns or 0) if ended_ns is None else (1, ended_ns),
        parent=parent,
        is_root=run_id == trace_id,
        kind=KINDS.get(str(run.get("run_type")), StepKind.OTHER) if "run_type" in run else None,
        begun_ns=begun_ns,
        ended_ns=ended_ns,
        has_failed=None if ended_ns is None else bool(run.get("error")),
        app=as_text(run.get("session_name")),
        model=_model(extra, facts),
        metadata=_metadata(run, facts) if run_id == trace_id else {},
    )
    given, gave = (as_parsed(_kept_here(run, name)) for name in ("inputs", "outputs"))
    # Clients write the outputs of a run that is not over as an empty object.
    return trace_id, with_contents(step, given, gave if ended_ns or gave else None, name=as_text(run.get("name")))


def _ids(run: JsonObject) -> tuple[str, str, str | None]:
    """The ids of the run, of its trace, and of the run above it if there is one."""
    places = _places(run)
    run_id = as_identifier(run.get("id"))
    parent = as_identifier(run.get("parent_run_id")) or (places[-2] if len(places) > 1 else None)
    trace_id = as_identifier(run.get("trace_id")) or (places[0] if places else None)
    if trace_id is None and parent is None and "run_type" in run:
        # Older clients name no trace: a run without another above it is the root.
        trace_id = run_id
    if run_id is None or trace_id is None:
        raise wrong_shape(f"langsmith.{'id' if run_id is None else 'trace_id'}", "missing")
    return run_id, trace_id, None if run_id == trace_id else parent


def _kept_here(run: JsonObject, name: str) -> JsonValue:
    """The inputs or outputs. Raises UnusablePayload (wrong_shape) if the service has put them aside."""
    contents = run.get(name)
    if not contents and run.get(f"{name}{_ELSEWHERE}") and str(run.get("run_type")) in KINDS:
        raise wrong_shape(f"langsmith.{name}", "kept in another store; export the runs with their contents")
    return contents


def _model(extra: JsonObject, facts: JsonObject) -> str | None:
    parameters = as_object(extra.get("invocation_params")) or {}
    names = (facts.get("ls_model_name"), *(parameters.get(name) for name in ("model", "model_name", "deployment_name")))
    return next((model for name in names if (model := as_text(name)) is not None), None)


def _metadata(run: JsonObject, facts: JsonObject) -> JsonObject:
    """User, session, tags, and what else the program has said of the exchange."""
    said = {COMMON.get(name, name): value for name, value in facts.items() if not OF_CLIENT.match(name)}
    said["tags"] = run.get("tags") or None
    return {name: value for name, value in said.items() if value is not None}
