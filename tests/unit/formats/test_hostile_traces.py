"""Rows of tracing systems in which anything may stand anywhere: read, or refused, and never a crash."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.adapters import ADAPTERS
from schemas.decoding import decode_payload
from schemas.payload import JsonObject
from schemas.traces.assembly import assemble
from schemas.traces.piece import uppermost_keys
from tests.bars import bar
from tests.unit.formats import (
    test_langchain_events,
    test_langfuse,
    test_langsmith,
    test_mlflow,
    test_opik,
    test_span_rows,
)

RECEIVED_AT = datetime(2026, 3, 2, tzinfo=UTC)
ROWS: dict[str, JsonObject] = {
    "langsmith run": test_langsmith.retrieval(child_runs=[test_langsmith.run()]),
    "langsmith batch": {"post": [test_langsmith.run()], "patch": [test_langsmith.retrieval()]},
    "langfuse event": test_langfuse.event("span-update", id="s", traceId="t", output=test_langfuse.DOCUMENTS),
    "langfuse batch": {"batch": [test_langfuse.event("trace-create", id="t", input="Q", output="A")]},
    "langfuse row": test_langfuse.observation(),
    "langfuse trace": test_langfuse.trace(observations=[test_langfuse.observation()]),
    "callback": test_langchain_events.told("retriever_end", "r", "p", [test_langchain_events.DOCUMENT]),
    "stream": test_langchain_events.streamed("on_chain_end", "r", "p", output={"answer": "A"}),
    "mlflow": test_mlflow.trace(),
    "opik": {"traces": [test_opik.OVER], "spans": [test_opik.FOUND, test_opik.SAID]},
    "phoenix": test_span_rows.NESTED,
    "phoenix frame": test_span_rows.FRAME,
    "printed span": test_span_rows.PRINTED,
}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", " ", "text", "{", '{"documents": [[]]}', '"a"', "9" * 70, "2026-13-99", "0x", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "output", "lc", "role"]), inner),
    max_leaves=6,
)


def with_one_place_replaced(node: JsonValue, value: JsonValue, random: Random) -> JsonValue:
    """The row with ``value`` in the place of something in it, or of a thing in a text that is JSON."""
    if isinstance(node, dict) and node and random.random() < 0.9:
        key = random.choice(sorted(node))
        return {**node, key: with_one_place_replaced(node[key], value, random)}
    if isinstance(node, list) and node and random.random() < 0.9:
        place = random.randrange(len(node))
        return [*node[:place], with_one_place_replaced(node[place], value, random), *node[place + 1 :]]
    return value


def read(row: JsonValue) -> None:
    reading = decode_payload(
        orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS),
        (),
        max_bytes=10**6,
        default_app="a",
        received_at=RECEIVED_AT,
    )
    assert reading.results or reading.pieces
    assert uppermost_keys(reading.pieces).keys() == {piece.trace for piece in reading.pieces}
    for piece in reading.pieces:
        assert piece.steps
        assemble(piece.steps, piece.trace.id)


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=bar(200, 60))
@given(value=ANYTHING, random=st.randoms(use_true_random=False))
def test_anything_may_stand_anywhere(name: str, value: JsonValue, random: Random) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = float(value)
    read(with_one_place_replaced(ROWS[name], _writable(value), random))


def _writable(value: JsonValue) -> JsonValue:
    """Numbers that the writer of JSON can write."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return float(value)
    if isinstance(value, list):
        return [_writable(one) for one in value]
    return {key: _writable(one) for key, one in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_of_one_system_alone(name: str) -> None:
    knowing = [adapter.name for adapter in ADAPTERS if adapter.matches(ROWS[name], ())]
    assert len(knowing) == 1 or knowing[1:] == ["flat"]


@pytest.mark.parametrize("name", ["langsmith run", "langsmith batch"])
def test_child_runs_in_child_runs_end_at_the_depth_of_json(name: str) -> None:
    row: JsonObject = ROWS[name]
    for _ in range(40):
        row = test_langsmith.run(child_runs=[row])
    read(row)
