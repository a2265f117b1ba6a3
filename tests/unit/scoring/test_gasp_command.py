"""The gasp command on a tiny model."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn.modules.module import register_module_forward_hook
from typer.testing import CliRunner, Result

from gasp_core import __version__
from gasp_core.cli import app, main
from gasp_core.errors import GaspError
from tests.labelled_answers import labelled_rows, write_rows

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


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def fails_with(message: str, *arguments: str) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, GaspError)
    assert message in str(done.exception)


def test_the_commands_of_gasp_rags_readme_run(rows_file: Path, tiny_folder: Path, tmp_path: Path) -> None:
    results = str(tmp_path / "results.jsonl")
    source = ("detect", "--input", str(rows_file), "--model", str(tiny_folder))
    done = run(*source, "--k-chunks", "5", "--threshold", "0.5", "--output", results)
    assert done.exit_code == 0
    assert done.stdout == f"wrote 4 sentence results from 2 answers to {results}\n"
    done = run(*source, "--economical", "--device", "cpu", "--output", results)
    assert done.exit_code == 0
    labelled = tmp_path / "labelled_results.csv"
    labelled.write_text("sensitivity,label\n0.1,1\n0.9,0\n", encoding="utf-8")
    columns = ("--label-col", "label", "--score-col", "sensitivity")
    done = run("eval", "--input", str(labelled), *columns, "--threshold", "0.5")
    assert done.exit_code == 0
    assert "roc_auc        1.0000" in done.stdout


def test_a_row_has_the_columns_of_gasp_rag_and_ours(rows_file: Path, tiny_folder: Path, tmp_path: Path) -> None:
    detect(rows_file, tmp_path / "out.jsonl", tiny_folder)
    record = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[1])
    theirs = ["item_id", "sent_index", "sentence", "sensitivity", "flagged", "supporting_chunk", "label"]
    features = ["gap", "jsd_noctx", "max_drop", "mean_drop", "top2_drop", "max_jsd", "n_tokens"]
    ours = ["start", "end", "skip_reason", "context_truncated", "answer_truncated", "n_tokens", "surprisal"]
    ours += ["contradicting_chunk", "detector", "supporting_chunk_indices", "support_unlocated"]
    ours += ["worst_start", "worst_end", "worst_text", "language", "language_supported"]
    assert set(record) == {*theirs, *(f"feat_{name}" for name in features), *ours}
    assert record["start"] <= record["worst_start"] < record["worst_end"] <= record["end"]
    assert record["worst_text"]
    assert (record["language"], record["language_supported"]) == ("en", True)
    assert record["worst_text"] in record["sentence"]


@pytest.mark.parametrize(
    ("options", "detector", "column"),
    [
        ((), "fused-free", None),
        (("--detector", "auto", "--k-chunks", "3"), "fused-free", None),
        (("--detector", "gap"), "gap", "feat_gap"),
        (("--detector", "jsd"), "jsd", "feat_jsd_noctx"),
        (("--detector", "max_drop"), "max-drop", "feat_max_drop"),
        (("--k-chunks", "5"), "max-drop", "feat_max_drop"),
        (("--threshold", "0.5"), "max-drop", "feat_max_drop"),
        (("--max-ans-tokens", "256"), "max-drop", "feat_max_drop"),
        (("--economical",), "gap", "feat_gap"),
        (("--feature", "top2_drop"), "top2-drop", "feat_top2_drop"),
    ],
)
def test_every_row_names_the_detector_of_its_score(
    rows_file: Path, tiny_folder: Path, tmp_path: Path, options: tuple[str, ...], detector: str, column: str | None
) -> None:
    detect(rows_file, tmp_path / "out.jsonl", tiny_folder, *options)
    for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        assert record["detector"] == detector
        assert column is None or record["sensitivity"] == record[column]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--detector", "magic"), "no detector 'magic'"),
        (("--detector", "gap", "--feature", "gap"), "name one of them"),
        (("--detector", "readout"), "readout was fitted to the scores of SmolLM2"),
    ],
)
def test_a_detector_that_is_of_no_use_is_said_in_a_line(
    rows_file: Path, tiny_folder: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    paths = ("--input", str(rows_file), "--output", str(tmp_path / "out.jsonl"), "--model", str(tiny_folder))
    fails_with(message, "detect", *paths, *options)


def test_detect_ranks_labelled_answers_as_eval_does(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    answers = write_rows(tmp_path / "museum.jsonl", labelled_rows(12))
    model = ("--model", str(tiny_folder), "--device", "cpu")
    for name, options in (
        ("fused-free", ()),
        ("gap", ("--detector", "gap")),
        ("jsd", ("--detector", "jsd", "--economical")),
    ):
        done = run("detect", "--input", str(answers), "--output", str(tmp_path / "results.jsonl"), *model, *options)
        assert done.exit_code == 0, done.output
        detected = json.loads(run("eval", str(tmp_path / "results.jsonl"), "--json").stdout)
        measured = json.loads(run("eval", str(answers), "--detector", name, *model, "--json").stdout)["museum"][name]
        assert (detected["n"], detected["positives"]) == (measured["n"], measured["n_unsupported"]) == (24, 6)
        assert detected["roc_auc"] == pytest.approx(measured["auc"], abs=1e-12)


def test_a_row_of_results_has_the_label_that_people_gave_its_sentence(tiny_folder: Path, tmp_path: Path) -> None:
    row = labelled_rows(1)[0]
    start = row["labels"][0]["start"]
    by_sentence = {"sentence_labels": [{"start": start, "end": len(row["answer"]), "label": 1}], "labels": None}
    rows = [row, row | {"id": "2"} | by_sentence, row | {"id": "3", "answer_label": 1}, row | {"source_id": None}]
    write_rows(tmp_path / "in.jsonl", rows)
    detect(tmp_path / "in.jsonl", tmp_path / "out.jsonl", tiny_folder, "--economical")
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one.get("label", "absent") for one in records] == [0, 1, None, 1, *["absent"] * 4]


def test_an_empty_answer_has_no_row_and_is_counted(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("context,answer\nSome text.,\nSome text.,Some text it is.\n", encoding="utf-8")
    paths = ("--input", str(tmp_path / "in.csv"), "--output", str(tmp_path / "out.csv"))
    done = run("detect", *paths, "--model", str(tiny_folder))
    assert "wrote 1 sentence results from 2 answers (1 empty and without a row) to" in done.stdout


def test_what_detect_writes_with_labels_eval_can_read(rows_file: Path, tiny_folder: Path, tmp_path: Path) -> None:
    detect(rows_file, tmp_path / "out.csv", tiny_folder)
    done = run("eval", "--input", str(tmp_path / "out.csv"), "--json")
    # The heading has a label but no score, the second answer a score but no label.
    assert json.loads(done.stdout) == {
        "n": 2,
        "positives": 2,
        "roc_auc": None,
        "pr_auc": 1.0,
        "without_label": 1,
        "without_score": 1,
    }


def test_a_sensitivity_at_the_threshold_is_not_flagged(tmp_path: Path) -> None:
    path = tmp_path / "labelled.jsonl"
    rows = [{"truth": 1, "s": 0.1}, {"truth": True, "s": "0.3"}, {"truth": "0", "s": 0.3}, {"truth": 0.0, "s": 2}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = ("--label-col", "truth", "--score-col", "s")
    found = json.loads(run("eval", "--input", str(path), *columns, "--threshold", "0.3", "--json").stdout)
    assert (found["tp"], found["fp"], found["fn"], found["tn"]) == (1, 0, 1, 2)
    assert found["roc_auc"] == 3.5 / 4
    found = json.loads(run("eval", "--input", str(path), *columns, "--threshold", "0.300001", "--json").stdout)
    assert (found["tp"], found["fp"], found["fn"], found["tn"]) == (2, 1, 0, 1)


def test_lines_name_every_metric_and_what_was_left_out(tmp_path: Path) -> None:
    path = tmp_path / "labelled.csv"
    path.write_text("label,sensitivity\n1,0.5\n0, \n,0.5\n,\n0,0.5\n", encoding="utf-8")
    lines = dict(line.split() for line in run("eval", "--input", str(path), "--threshold", "1").stdout.splitlines())
    assert lines == {
        "n": "2",
        "positives": "1",
        "roc_auc": "0.5000",
        "pr_auc": "0.5000",
        "precision": "0.5000",
        "recall": "1.0000",
        "f1": "0.6667",
        "mcc": "0.0000",
        "tp": "1",
        "fp": "1",
        "fn": "0",
        "tn": "0",
        "without_label": "2",
        "without_score": "1",
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("in.csv", "label,sensitivity\n1,0.5\n2,0.5\n", "in.csv:3: the label in 'label' is not 0 or 1"),
        ("in.csv", "label,sensitivity\nyes,0.5\n", "in.csv:2: the label in 'label' is not 0 or 1"),
        ("in.csv", "label,sensitivity\n0.4,0.5\n", "in.csv:2: the label in 'label' is not 0 or 1"),
        ("in.csv", "label,sensitivity\n1,high\n", "in.csv:2: the score in 'sensitivity' is not a finite number"),
        ("in.jsonl", '{"label": 1, "sensitivity": NaN}\n', "in.jsonl:1: the score in 'sensitivity'"),
        ("in.jsonl", '{"label": 1, "sensitivity": [1]}\n', "in.jsonl:1: the score in 'sensitivity'"),
        ("in.csv", "labels,sensitivity\n1,0.5\n", "no row has a column 'label'"),
        ("in.csv", "label,sensitivity\n", "no row has a column 'label'"),
        ("in.jsonl", '{"label": 1}\n', "no row has a column 'sensitivity'"),
    ],
)
def test_a_file_that_cannot_be_measured_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    fails_with(message, "eval", "--input", str(tmp_path / name))


@pytest.fixture
def threads_seen() -> Iterator[set[int]]:
    """With how many threads modules computed meanwhile."""
    seen: set[int] = set()
    hook = register_module_forward_hook(lambda *_: seen.add(torch.get_num_threads()))
    yield seen
    hook.remove()


@pytest.mark.parametrize("by_option", [True, False])
def test_models_compute_with_the_threads_that_were_asked_for_and_the_process_keeps_its_own(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads_seen: set[int], *, by_option: bool
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GASP_THREADS", "5" if by_option else "3")
    answers = str(write_rows(tmp_path / "museum.jsonl", labelled_rows(4)))
    wanted = ("--model", str(tiny_folder), "--device", "cpu", *(("--threads", "3") if by_option else ()))
    before = torch.get_num_threads()
    for arguments in (("eval", answers, "--detector", "gap"), ("detect", "--input", answers)):
        output = ("--output", str(tmp_path / "out.jsonl")) if arguments[0] == "detect" else ()
        done = run(*arguments, *output, *wanted)
        assert done.exit_code == 0, done.output
        assert threads_seen == {3}
        assert torch.get_num_threads() == before
        threads_seen.clear()


def test_fewer_threads_than_one_are_refused(tmp_path: Path) -> None:
    done = run("eval", str(write_rows(tmp_path / "museum.jsonl", labelled_rows(4))), "--threads", "0")
    assert done.exit_code == 2
    assert "--threads" in done.output


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").stdout == f"gasp {__version__}\n"
