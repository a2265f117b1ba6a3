from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.adapters import adapter_for
from schemas.adapters.trulens import TruLensAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.traces.assembly import assemble
from schemas.traces.piece import Piece
from schemas.traces.step import Step
from tests.unit.formats.json_values import ANYTHING

TRACE = str(2**127 + 1)


def event(span: str, parent: str, attributes: JsonObject, second: int) -> JsonObject:
    return {
        "event_id": span,
        "record": {"name": "step", "kind": 1, "parent_span_id": parent, "status": "STATUS_CODE_UNSET"},
        "record_attributes": {"ai.observability.app_name": "desk", "ai.observability.record_id": "r-1", **attributes},
        "record_type": "SPAN",
        "resource_attributes": {"service.name": "trulens"},
        "start_timestamp": f"2026-11-30 09:15:0{second}.500000",
        "timestamp": f"2026-11-30 09:15:0{second}.900000",
        "trace": {"span_id": span, "trace_id": TRACE, "parent_id": parent},
    }


ROOT = event(
    "11",
    "",
    {
        "ai.observability.span_type": "record_root",
        "ai.observability.record_root.input": "Is it open?",
        "ai.observability.record_root.output": "Yes, until 6.",
    },
    1,
)
RETRIEVAL = event(
    "12",
    "11",
    {
        "ai.observability.span_type": "retrieval",
        "ai.observability.retrieval.query_text": "open?",
        "ai.observability.retrieval.retrieved_contexts": ["Open until 6.", "Closed on Sundays."],
    },
    1,
)


def piece(row: JsonObject) -> Piece:
    (found,) = adapter_for(row, ()).read(row)
    assert isinstance(found, Piece)
    return found


def as_text_columns(row: JsonObject) -> JsonObject:
    return {name: orjson.dumps(value).decode() if isinstance(value, dict) else value for name, value in row.items()}


def in_capitals(row: JsonObject) -> JsonObject:
    return {name.upper(): value for name, value in row.items()}


@pytest.mark.parametrize("written", [dict, as_text_columns, in_capitals])
def test_the_events_of_a_record_make_an_exchange(written: type[dict[str, object]]) -> None:
    pieces = [piece(written(row)) for row in (RETRIEVAL, ROOT)]  # type: ignore[arg-type] # JSON objects stay such
    steps: list[Step] = [step for one in pieces for step in one.steps]
    assert {one.trace.id for one in pieces} == {TRACE}
    assert [one.ends for one in pieces] == [False, True]
    assembly = assemble(steps, TRACE)
    (exchange,) = assembly.exchanges
    assert assembly.is_complete
    assert (exchange["question"], exchange["answer"], exchange["app"]) == ("Is it open?", "Yes, until 6.", "desk")
    passages = exchange["passages"]
    assert isinstance(passages, list)
    assert [one["text"] for one in passages if isinstance(one, dict)] == ["Open until 6.", "Closed on Sundays."]


def test_an_event_that_names_no_trace_is_refused_by_name() -> None:
    with pytest.raises(UnusablePayload) as raised:
        tuple(TruLensAdapter().read({**ROOT, "trace": {"span_id": "11"}}))
    assert raised.value.detail == "trulens.trace.trace_id: missing"


def test_other_rows_are_left_to_others() -> None:
    assert not TruLensAdapter().matches({"record_attributes": {"name": "x"}}, ())
    assert not TruLensAdapter().matches({"record_id": "r-1", "input": "Q", "output": "A"}, ())


@given(st.dictionaries(st.sampled_from([*ROOT, "RECORD"]), ANYTHING, max_size=6))
def test_any_event_is_read_or_refused(row: JsonObject) -> None:
    attributes: JsonObject = {"ai.observability.app_name": "desk"}
    with suppress(UnusablePayload):
        (found,) = TruLensAdapter().read({"record_attributes": attributes, **row})
        assert isinstance(found, Piece)
        assert found.trace.system == "trulens"
