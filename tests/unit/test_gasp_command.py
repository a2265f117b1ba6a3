"""The gasp command on a tiny model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gasp_core.cli import app, main

ROWS = [
    {
        "context": "The museum opens at nine. Tickets cost twelve euros. Dogs must stay outside.",
        "answer": "# Visit\n\nThe museum opens at nine. Tickets cost twelve euros.",
        "query": "When does it open?",
        "label": 1,
    },
    {
        "passages": ["Refunds are possible within 30 days.", "Bring the receipt."],
        "answer": "Bring the receipt with you.",
    },
]


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def detect(rows: Path, output: Path, model: Path, *options: str) -> None:
    arguments = ["detect", "--input", str(rows), "--output", str(output), "--model", str(model), "--device", "cpu"]
    done = CliRunner().invoke(app, [*arguments, *options])
    assert done.exit_code == 0, done.output


def test_detect_writes_a_row_for_every_unit_with_features_flag_and_supporting_chunk(
    rows_file: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    detect(rows_file, tmp_path / "out.jsonl", tiny_folder, "--k-chunks", "3", "--threshold", "99")
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(one["item_id"], one["sent_index"]) for one in records] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    for one in records:
        assert ROWS[one["item_id"]]["answer"][one["start"] : one["end"]] == one["sentence"]
    heading, sentence, *_ = records
    assert (heading["skip_reason"], heading["sensitivity"], heading["flagged"]) == ("heading", None, None)
    assert sentence["flagged"] is True
    assert (
        sentence["sensitivity"] == sentence["feat_max_drop"] >= sentence["feat_top2_drop"] >= sentence["feat_mean_drop"]
    )
    assert (sentence["label"], records[3].get("label")) == (1, None)


def test_the_economical_way_reports_the_gap_and_no_chunk(rows_file: Path, tiny_folder: Path, tmp_path: Path) -> None:
    detect(rows_file, tmp_path / "out.csv", tiny_folder, "--economical")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    assert records[1]["sensitivity"] == records[1]["feat_gap"]
    assert (records[1]["feat_max_drop"], records[1]["supporting_chunk"]) == ("", "")


@pytest.mark.parametrize(
    ("output", "message"),
    [("out.txt", "must be a .jsonl or .csv file"), ("no/such/folder/out.jsonl", "its folder does not exist")],
)
def test_an_output_that_cannot_be_written_is_said_before_anything_is_scored(
    rows_file: Path,
    tmp_path: Path,
    output: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["gasp", "detect", "--input", str(rows_file), "--output", str(tmp_path / output), "--model", "none"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
