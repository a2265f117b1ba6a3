from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from schemas.dead_letter import DeadLetter
from schemas.interaction import Interaction
from schemas.json_schema import CONTRACTS, DIRECTORY, render, write
from schemas.reject_reason import RejectReason
from tests.fixtures.bad_inputs import row
from tests.unit.review_tasks import review_task

NATIVE = {
    "schema": "gasp.interaction.v1",
    **row("i1"),
    "occurred_at": "2025-06-01T12:30:00Z",
    "passages": [{"id": "a", "text": "Text.", "score": 0.5, "metadata": {"page": 4}}, {"id": "b", "text": ""}],
    "generator_model": "m-7b",
    "metadata": {"tenant": "t7", "tags": ["a", None, 1.5]},
    "trace": "an unknown field",
}


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((DIRECTORY / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_file_is_in_step_with_the_model(name: str) -> None:
    # If this fails: python -m schemas.json_schema
    assert (DIRECTORY / name).read_text(encoding="utf-8") == render(CONTRACTS[name])


def test_there_is_a_file_for_every_contract_and_no_other(tmp_path: Path) -> None:
    write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in DIRECTORY.iterdir())


@pytest.mark.parametrize("native", [NATIVE, row("i2"), {"interaction_id": "1", "app": "a", "answer": ""}])
def test_native_rows_are_valid(native: dict[str, object]) -> None:
    validator("interaction.v1.json").validate(native)


@pytest.mark.parametrize(
    "native",
    [
        {name: value for name, value in NATIVE.items() if name != "answer"},
        {**NATIVE, "answer": None},
        {**NATIVE, "interaction_id": " "},
        {**NATIVE, "interaction_id": "x" * 513},
        {**NATIVE, "schema": "gasp.interaction.v2"},
        {**NATIVE, "passages": ["text"]},
        {**NATIVE, "passages": [{"id": "a", "text": ""}] * 1001},
    ],
)
def test_rows_that_break_the_contract_are_not(native: dict[str, object]) -> None:
    assert not validator("interaction.v1.json").is_valid(native)


def test_what_the_models_write_is_valid() -> None:
    native = {**NATIVE, "occurred_at": datetime(2025, 6, 1, tzinfo=UTC)}
    del native["trace"]
    written = json.loads(Interaction.model_validate(native).model_dump_json(by_alias=True))
    validator("interaction.v1.json").validate(written)
    letter = DeadLetter(
        reason=RejectReason.TOO_DEEP,
        detail="nested deeper than 100",
        topic="interactions",
        partition=0,
        offset=7,
        timestamp_ms=1,
        size_bytes=10,
        value_attached=True,
        rejected_at=datetime(2025, 6, 1, tzinfo=UTC),
    )
    validator("dead_letter.v1.json").validate(json.loads(letter.model_dump_json(by_alias=True)))
    validator("review_task.v1.json").validate(json.loads(review_task().model_dump_json(by_alias=True)))
