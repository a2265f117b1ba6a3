"""The JSON Schema files of the contracts. ``python -m schemas.json_schema`` writes them."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from schemas.dead_letter import DeadLetter
from schemas.interaction import Interaction
from schemas.review_label import ReviewLabel
from schemas.review_task import ReviewTask

DIRECTORY = Path(__file__).parent / "json"
CONTRACTS: dict[str, type[BaseModel]] = {
    "interaction.v1.json": Interaction,
    "dead_letter.v1.json": DeadLetter,
    "review_task.v1.json": ReviewTask,
    "review_label.v1.json": ReviewLabel,
}


def render(contract: type[BaseModel]) -> str:
    """Return the contract as JSON Schema 2020-12, the same text every time, ending in a line break."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **contract.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(directory: Path = DIRECTORY) -> None:
    """Write every contract's file into the directory."""
    for name, contract in CONTRACTS.items():
        (directory / name).write_text(render(contract), encoding="utf-8")


if __name__ == "__main__":
    write()
