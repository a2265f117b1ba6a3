"""Whatever stands in a vendor's row in place of what belongs there, the row has an outcome."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.decoding import Decoded
from tests.bars import bar
from tests.unit.formats import (
    test_anthropic,
    test_aws,
    test_azure_on_your_data,
    test_cohere,
    test_gemini,
    test_openai_chat,
    test_openai_responses,
)
from tests.unit.formats.json_values import ANYTHING
from tests.unit.formats.vendors import ANSWER, HOURS, read

ROWS: list[dict[str, Any]] = [
    {"request": test_openai_responses.REQUEST, "response": test_openai_responses.WHOLE},
    {"request": {"messages": test_openai_chat.ASKED}, "response": test_azure_on_your_data.STREAM},
    test_azure_on_your_data.OLD,
    {"messages": test_openai_chat.ASKED, "response": test_openai_chat.completion(ANSWER), "contexts": [HOURS]},
    test_openai_chat.completion(f"{ANSWER}[1]", search_results=[{"url": "u", "snippet": HOURS}], citations=["u"]),
    {"request": test_anthropic.GIVEN, "response": test_anthropic.SAID},
    {"request": {"messages": test_cohere.ASKED, "documents": [HOURS]}, "response": test_cohere.CITED},
    test_cohere.FIRST_VERSION,
    {"request": {"contents": "Q"}, "response": test_gemini.CAMEL},
    test_gemini.SNAKE,
    {"request": test_aws.REQUEST, "response": test_aws.CITED},
    {"question": "Q", "answer": ANSWER, "documents": test_aws.KENDRA},
]
# Short ones are frequent, and the others deep enough for every field.
STEPS = st.lists(st.integers(0, 7), min_size=1, max_size=9)


def spoiled(value: JsonValue, steps: list[int], other: JsonValue) -> JsonValue:
    """The value with what lies at the end of the steps replaced."""
    if not steps or not isinstance(value, dict | list) or not value:
        return other
    if isinstance(value, list):
        place = steps[0] % len(value)
        return [spoiled(one, steps[1:], other) if at == place else one for at, one in enumerate(value)]
    name = list(value)[steps[0] % len(value)]
    return {**value, name: spoiled(value[name], steps[1:], other)}


@given(st.sampled_from(ROWS), STEPS, ANYTHING)
@settings(max_examples=bar(600, 150), deadline=None)
def test_a_row_that_is_spoiled_anywhere_has_an_outcome(row: dict[str, Any], steps: list[int], other: JsonValue) -> None:
    found = read(spoiled(row, steps, other))
    if isinstance(found, Decoded):
        logged = found.interaction
        assert all(logged.answer[start:end] for start, end in logged.marks)
