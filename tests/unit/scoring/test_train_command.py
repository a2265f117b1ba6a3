"""`gasp train` learns a readout of a model of one's own, and the other commands take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gasp_core.cli import app
from gasp_core.detectors.readout.readout import load_readout
from gasp_core.gasp_rag.gasp import GASP
from gasp_core.model import LanguageModel
from tests.labelled_answers import PASSAGES, labelled_rows, write_rows

ANSWERS = 120


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    return write_rows(tmp_path / "museum.jsonl", labelled_rows(ANSWERS))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_readout_is_learned_and_used(
    data: Path, tiny_folder: Path, tiny_model: LanguageModel, tmp_path: Path
) -> None:
    own = tmp_path / "own.safetensors"
    model = ("--model", tiny_folder, "--device", "cpu")
    done = run("train", data, "--out", own, *model)
    assert done.exit_code == 0, done.output
    assert "museum: 240 sentences of 60 sources, 60 unsupported; AUC out of fold 1.000" in done.stdout
    readout = load_readout(own)
    assert readout.projection.shape[0] == tiny_model.width
    assert {scorer.revision for scorer in readout.scorers} == {tiny_model.revision}

    measured = run("eval", data, "--detector", f"{own},lexical", *model, "--resamples", 20, "--json")
    assert measured.exit_code == 0, measured.output
    entry = json.loads(measured.stdout)["museum"]["readout"]
    assert (entry["auc"], entry["n"], entry["n_unsupported"]) == (1.0, 240, 60)

    gasp = GASP(str(tiny_folder), device="cpu", detector=str(own))
    found = gasp.detect(PASSAGES, "The museum opens at nine. A café waits upstairs.", "When does museum 1 open?")
    assert [one.flagged for one in found.sentences] == [False, True]
    assert gasp.threshold == readout.bounds.flag_below


def test_what_was_learned_is_for_no_other_model(data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.safetensors"
    assert run("train", data, "--out", own, "--model", tiny_folder, "--device", "cpu", "--layer", 1).exit_code == 0
    done = run("eval", data, "--detector", own, "--model", tiny_folder, "--device", "cpu", "--dtype", "bfloat16")
    assert done.exit_code != 0
    assert "was fitted to the scores of" in str(done.exception)


def test_wrong_wishes_are_told(data: Path, tiny_folder: Path, tmp_path: Path) -> None:
    few = write_rows(tmp_path / "few.jsonl", labelled_rows(4))
    refusals = write_rows(
        tmp_path / "refusals.jsonl",
        [row | {"answer": "I cannot answer that.", "labels": []} for row in labelled_rows(2)],
    )
    for arguments, told in (
        ((data, "--out", tmp_path / "own.txt"), "must be a .safetensors file"),
        ((data, "--out", tmp_path / "no" / "own.safetensors"), "its folder does not exist"),
        ((tmp_path / "none.jsonl", "--out", tmp_path / "own.safetensors"), "none.jsonl"),
        ((few, "--out", tmp_path / "own.safetensors"), "too few to learn from"),
        ((refusals, "--out", tmp_path / "own.safetensors"), "refusals: no sentence has both a label and a score"),
        ((few, "--out", tmp_path / "own.safetensors", "--layer", 99), "another one is to be read"),
    ):
        done = run("train", *arguments, "--model", tiny_folder, "--device", "cpu")
        assert done.exit_code != 0
        assert told in str(done.exception), done.output
    assert not (tmp_path / "own.safetensors").exists()
