"""The benchmarks at their smallest, so that they cannot rot."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks import throughput, views

# What the machine with the GPU may lack.
ABSENT = ("typer", "rich", "structlog", "sentencex", "pydantic", "orjson", "sqlalchemy", "psycopg", "kafka")


@pytest.fixture
def directory() -> Iterator[Path]:
    """Not below pytest's own, which only its owner may enter."""
    made = Path(tempfile.mkdtemp(prefix="gasp-benchmarks-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_throughput_is_measured_from_the_end_of_the_first_batch() -> None:
    (found,) = throughput.measure(throughput.BrokerName.TANSU, messages=60, batches=[20])
    assert 0 < found.interactions <= 60 - 1
    assert found.interactions_per_s > 0
    assert found.stages_ms["store"] > 0
    # So few messages may take less than a tick of the clock that counts CPU.
    assert found.postgres_ms >= 0


def test_views_are_asked_by_index_and_every_statement_tells_its_plan(directory: Path) -> None:
    found = {one.name: one for one in views.measure(directory, count=2_000)}
    assert found["v_sentences: one of an app"].rows == views.SENTENCES
    assert found["v_flagged_sentences: newest 50"].rows == 50
    assert "interactions (index)" in found["known"].scans
    assert found["claim re-scoring"].rows == 16
    assert [one.name for one in found.values() if one.whole and not one.allowed] == []


def test_the_benchmark_of_a_gpu_needs_torch_and_transformers_alone() -> None:
    hidden = f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r})); import tests.benchmarks.gpu_scoring"
    subprocess.run([sys.executable, "-c", hidden], check=True, cwd=Path(__file__).parents[2])
