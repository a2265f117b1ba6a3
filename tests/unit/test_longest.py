from __future__ import annotations

from pathlib import Path

from tests.longest import LONGEST

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_begun_first_is_there_and_named_once() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
