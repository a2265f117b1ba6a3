"""Exchanges of the tests' own making, as many as are asked for."""

from __future__ import annotations

import json
from pathlib import Path

OPENINGS = ("eight", "nine", "ten", "eleven")
CITIES = ("Arvenna", "Belmora", "Cestria", "Dunvale", "Elsmoor")


def exchange(number: int) -> dict[str, object]:
    """One exchange about one museum; every fifth answer says something that no passage does."""
    city, opening = CITIES[number % len(CITIES)], OPENINGS[number % len(OPENINGS)]
    answer = f"The {city} museum opens at {opening}. Ticket number {number} costs twelve euros."
    if number % 5 == 0:
        answer += " Visitors may feed the penguins in the cellar."
    return {
        "interaction_id": f"museum-{number}",
        "app": "museums",
        "question": f"When does the museum of {city} open?",
        "passages": [
            {"id": "hours", "text": f"The {city} museum opens at {opening} and closes at six."},
            {"id": "prices", "text": f"Ticket number {number} costs twelve euros; children pay nothing."},
        ],
        "answer": answer,
    }


def write_exchanges(path: Path, count: int, *more: str) -> Path:
    """A file of exchanges with further lines spread among them."""
    lines = [json.dumps(exchange(number)) for number in range(count)]
    for position, line in enumerate(more):
        lines.insert((position * 7 + 3) % len(lines), line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
