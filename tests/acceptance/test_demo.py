"""The demonstration, with the packaged model: every sentence of every answer, read back from Postgres."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from tests.workers import WORKER

FIELDS = {
    "app",
    "interaction_id",
    "answer",
    "sentence",
    "start",
    "end",
    "text",
    "score",
    "gap",
    "jsd_no_context",
    "surprisal",
    "worst_start",
    "worst_end",
    "n_tokens",
    "flagged",
    "skip_reason",
    "supporting_passage_id",
    "supporting_passage_ids",
    "supporting_drop",
    "attribution",
    "threshold_version",
    "scorer",
    "language",
    "language_supported",
}
EXCHANGES = 2


@pytest.mark.timeout(600)
def test_the_demonstration_shows_and_writes_every_sentence_of_every_answer(tmp_path: Path) -> None:
    resolve_model(PACKAGED_MODEL)
    samples = Path("worker/samples.jsonl").read_text(encoding="utf-8").splitlines()[:EXCHANGES]
    given = {row["interaction_id"]: row for row in map(json.loads, samples)}
    output = tmp_path / "out.jsonl"
    done = subprocess.run(
        [WORKER, "demo", "--limit", str(EXCHANGES), "--json", str(output)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert all(row.keys() == FIELDS for row in rows)
    answers = {name: list(group) for name, group in groupby(rows, lambda row: row["interaction_id"])}
    assert answers.keys() == given.keys()
    for name, sentences in answers.items():
        check_answer(given[name]["answer"], sentences, {passage["id"] for passage in given[name]["passages"]})
    assert any(row["flagged"] for row in rows)
    assert f"exchanges        {EXCHANGES}" in done.stdout
    assert "make psql" in done.stdout


def check_answer(answer: str, sentences: list[dict[str, Any]], passages: set[str]) -> None:
    """Once each, in order, cut from the stored answer, and attributed if one of them is flagged."""
    assert "".join(str(row["text"]) for row in sentences) == answer
    assert [row["sentence"] for row in sentences] == list(range(len(sentences)))
    flagged = any(row["flagged"] for row in sentences)
    for row in sentences:
        assert row["answer"] == answer
        assert answer[row["start"] : row["end"]] == row["text"]
        assert (row["score"] is None) == (row["gap"] is None) == (row["skip_reason"] is not None)
        assert row["threshold_version"] == "*/1"
        if flagged and row["gap"] is not None:
            assert row["attribution"] in {"supported", "unlocated", "none_reacts"}
            assert (row["supporting_passage_id"] in passages) == (row["attribution"] == "supported")
            assert row["supporting_drop"] is not None
