from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from tests.unit.formats.exchanges import detail_of, facts, named, read

EXPECTED = ("Is tea hot?", "Yes.", [("d1", "Tea is hot.", None)])
DOCUMENT = named("d1", "Tea is hot.")
OUTPUTS: dict[str, JsonValue] = {"answer": "Yes.", "context": [DOCUMENT]}


@pytest.mark.parametrize(
    "row",
    [
        {"inputs": {"question": "Is tea hot?"}, "outputs": OUTPUTS},
        {"inputs": orjson.dumps({"input": "Is tea hot?"}).decode(), "outputs": orjson.dumps(OUTPUTS).decode()},
        {"input": {"query": "Is tea hot?"}, "output": "Yes.", "retrieved_documents": [DOCUMENT]},
        {"input": "Is tea hot?", "output": OUTPUTS},
        {"inputs": {"question": "Is tea hot?"}, "outputs": "Yes.", "retrieved_context": [DOCUMENT]},
        {"request": "Is tea hot?", "response": OUTPUTS},
        {"vars": {"question": "Is tea hot?", "context": [DOCUMENT]}, "response": {"output": "Yes.", "cached": False}},
        {"question": "Is tea hot?", "result": {"result": "Yes.", "source_documents": [DOCUMENT]}},
        {"question": "Is tea hot?", "response": {"data": "Yes.", "query": "Is tea hot?", "documents": [DOCUMENT]}},
        {
            "values": {
                "messages": [
                    {"type": "human", "content": "Is tea hot?"},
                    {"type": "tool", "content": "", "artifact": [DOCUMENT]},
                    {"type": "ai", "content": "Yes."},
                ]
            },
            "next": [],
        },
    ],
)
def test_what_went_in_and_what_came_out_make_an_exchange(row: JsonValue) -> None:
    assert facts(read(row, "inputs_outputs")) == EXPECTED


def test_the_rows_own_id_goes_before_those_inside() -> None:
    row: JsonValue = {"id": "outer", "inputs": {"question": "Q", "id": "in"}, "outputs": {**OUTPUTS, "id": "out"}}
    assert read(row, "inputs_outputs").interaction_id == "outer"


def test_an_output_that_is_a_message_stays_with_the_flat_row() -> None:
    row: JsonValue = {"input": "Q", "output": {"role": "assistant", "content": "A"}, "contexts": ["C"]}
    assert facts(read(row, "flat")) == ("Q", "A", [("ctx-1", "C", None)])


def test_an_answer_that_is_data_itself_is_a_text() -> None:
    row: JsonValue = {"question": "Q", "output": '{"hot": true}', "contexts": ["C"]}
    assert read(row, "flat").answer == '{"hot": true}'


def test_what_makes_no_exchange_together_is_refused() -> None:
    assert "looks like inputs and outputs" in detail_of({"inputs": {"question": "Q"}, "outputs": {"answer": "A"}})
