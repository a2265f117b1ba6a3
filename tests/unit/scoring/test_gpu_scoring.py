"""The GPU benchmark, proved on a CPU with a tiny model: it has to run at its first try where device time is short."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.benchmarks.gpu_scoring import METHODS, TINY, main


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    output = tmp_path_factory.mktemp("gpu") / "build" / "gpu_scoring.json"
    assert main(["--cpu-check", "--output", str(output)]) == 0
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found


def test_the_benchmark_finds_float32_exact(report: dict[str, Any]) -> None:
    assert "cannot_run" in report["float32"]["varlen_attention"]
    for attention in ("segment_attention", "blocked_attention"):
        assert report["float32"][attention]["log_probability_max"] <= 1e-4
    # Something was there to be found.
    assert report["what_removal_does"]["one_out_max"] > 0.1


def test_the_benchmark_measures_every_way_at_every_budget(report: dict[str, Any]) -> None:
    measured = {(row["way"], row["method"], row["tokens_a_forward"]) for row in report["ways"]}
    ours = {("ours", method, tokens) for method in METHODS for tokens in TINY.budgets}
    plain = {("plain", method, tokens) for method in METHODS[:2] for tokens in TINY.budgets}
    assert measured == ours | plain | {("plain, one by one", method, 1) for method in METHODS[:2]}


def test_tokens_that_run_are_counted(report: dict[str, Any]) -> None:
    tokens = {(row["way"], row["method"]): row["tokens_run_per_answer"] for row in report["ways"]}
    # Prompts of 3 + 5 x 16 + 5 tokens, 3 + 5, and five of 3 + 4 x 16 + 5; each with 11 of the 12 answer tokens.
    assert tokens["plain, one by one", "two-pass"] == 88 + 8 + 2 * 11
    assert tokens["plain, one by one", "leave-one-out"] == 88 + 8 + 5 * 72 + 7 * 11
    # Shared: the full prompt, the one without context, and what follows a removed passage.
    assert tokens["ours", "two-pass"] == 88 + 8 + 2 * 11
    assert tokens["ours", "leave-one-out"] == 88 + 8 + (64 + 48 + 32 + 16) + 5 * 5 + 7 * 11
