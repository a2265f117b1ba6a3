"""`gasp detect` with the packaged model, measured as `gasp eval` measures the detector itself."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from gasp_core.detectors.readout.detector import READOUT
from gasp_core.packaged import PACKAGED_MODEL, cache_directory, resolve_model
from tests.forked import Forked, run_gasp
from tests.labelled_answers import labelled_rows, write_rows


@pytest.mark.timeout(600)
def test_by_default_detect_ranks_as_the_readout_does(tmp_path: Path) -> None:
    resolve_model(PACKAGED_MODEL)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "models").symlink_to(cache_directory().resolve() / "models")
    rows = labelled_rows(8)
    for row in rows[1::4]:  # people err, too: so that not all of one label is above all of the other
        row["labels"] = [{"start": 0, "end": len(row["answer"])}]
    answers, results = write_rows(tmp_path / "museum.jsonl", rows), tmp_path / "results.jsonl"

    gasp("detect", "--input", answers, "--output", results, cache=cache)
    records = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    assert {one["detector"] for one in records} == {"readout"}
    assert all(one["flagged"] == (one["sensitivity"] < READOUT.require_bounds().flag_below) for one in records)
    assert any(one["supporting_chunk"] is not None for one in records)
    detected = json.loads(gasp("eval", results, "--json", cache=cache))
    measured = json.loads(gasp("eval", answers, "--detector", "readout", "--json", cache=cache))["museum"]["readout"]
    assert (detected["n"], detected["positives"]) == (measured["n"], measured["n_unsupported"]) == (16, 8)
    assert 0.5 < measured["auc"] < 1
    assert detected["roc_auc"] == pytest.approx(measured["auc"], abs=1e-12)


def gasp(*arguments: object, cache: Path) -> str:
    """What the command prints."""
    log = cache / f"{time.monotonic_ns()}.log"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "GASP_CACHE_DIR": str(cache)}
    process = Forked(run_gasp, [str(argument) for argument in arguments], environment, log)
    try:
        assert process.wait(540) == 0, log.read_text(encoding="utf-8")
    finally:
        process.kill()
    return log.with_suffix(".out").read_text(encoding="utf-8")
