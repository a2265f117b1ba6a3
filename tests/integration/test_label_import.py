"""``gasp-worker labels`` on files as people make them, and a real database."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from structlog import reset_defaults
from typer.testing import CliRunner, Result

from tests.integration.label_examples import ASKED, answered, asked, held, label, task_state
from tests.integration.store_examples import rows
from worker.cli import app
from worker.errors import InputFileError
from worker.review import label_import
from worker.review.label_file import MAX_LINE_BYTES
from worker.store.store import Store

HEAD = "task_id,sentence_index,label,reviewer,at,note"


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, database_url: str) -> Iterator[None]:
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    yield
    reset_defaults()


@pytest.fixture
def task(store: Store, database_url: str) -> UUID:
    answered(store, "id-0")
    return asked(database_url, "id-0")


def run(*arguments: str | Path, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["labels", *map(str, arguments)])
    assert done.exit_code == exit_code, (done.output, done.exception)
    return done


def imported(path: Path, *options: str, exit_code: int = 0) -> dict[str, int]:
    counts: dict[str, int] = json.loads(run("import", path, "--json", *options, exit_code=exit_code).stdout)
    return counts


def refusal(path: Path) -> str:
    with pytest.raises(InputFileError) as caught:
        CliRunner().invoke(app, ["labels", "import", str(path)], catch_exceptions=False)
    return str(caught.value)


def test_a_table_of_a_spreadsheet_goes_in_and_one_bad_row_of_each_kind_is_told(
    database_url: str, task: UUID, tmp_path: Path
) -> None:
    path, rejects = tmp_path / "labels.csv", tmp_path / "rejects.jsonl"
    lines = [
        HEAD,
        f"{task},0,Unsupported: baseless,ada,2026-11-30T12:00Z,fine",
        f"{task},0,Unsupported: baseless,ada,2026-11-30T12:00Z,fine",
        f'{task},1.0,supported,ada,,"a note\r\nof two lines"',
        f"{task},1,maybe,ada,,",
        f"{task},9,partly,ada,,",
        f"{task},1,partly,bob,30.11.2026,",
        f"{task},1,partly,bob,45992,",
        f"{task},1,partly,,,",
        "17,1,partly,bob,,",
        f"{task},x,partly,bob,,",
        f"{task},1,partly",
        f"{task},1,partly,bob,,,too many",
        f"{task},1,,,,",
        f"{task},1,not a claim,bob,,caf\xe9",
        f"{task},1,not a claim,cyd,,nul\x00",
        "",
    ]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode("latin-1"))
    done = run("import", path, "--json", "--rejects", rejects, exit_code=1)
    assert json.loads(done.stdout) == {"stored": 3, "repeated": 1, "no_label": 1, "rejected": 10}
    told = [json.loads(line) for line in rejects.read_text("utf-8").splitlines()]
    # The fourth line of the file is within the note of the third row.
    assert sorted((one["line"], one["reason"]) for one in told) == [
        (6, "bad_label"),
        (7, "unknown_sentence"),
        (8, "wrong_shape"),
        (9, "wrong_shape"),
        (10, "wrong_shape"),
        (11, "wrong_shape"),
        (12, "wrong_shape"),
        (13, "wrong_shape"),
        (14, "wrong_shape"),
        (16, "wrong_shape"),
    ]
    assert "line 6: bad_label: label: must be supported" in done.stderr
    assert "maybe" not in done.stderr
    assert [row["note"] for row in rows(database_url, "SELECT note FROM review_labels ORDER BY id")] == [
        "fine",
        "a note\r\nof two lines",
        "nul\ufffd",
    ]
    assert imported(path, exit_code=1) == {"repeated": 4, "no_label": 1, "rejected": 10}


def test_a_dry_run_says_what_would_become_of_each_and_stores_nothing(
    database_url: str, task: UUID, tmp_path: Path
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(f"{HEAD}\n{task},0,partly,ada,,\n{task},0,partly,ada,,\n{task},7,partly,ada,,\n", "utf-8")
    assert imported(path, "--dry-run", exit_code=1) == {"stored": 1, "repeated": 1, "rejected": 1}
    assert held(database_url) == []
    assert "would be: 1 rejected" in run("import", path, "--dry-run", exit_code=1).stdout


def test_a_semicolon_or_a_tab_may_stand_between_the_cells(database_url: str, task: UUID, tmp_path: Path) -> None:
    for reviewer, delimiter in (("ada", ";"), ("bob", "\t")):
        path = tmp_path / f"{reviewer}.csv"
        cells = (HEAD.replace(",", delimiter).upper(), delimiter.join((str(task), "0", "partly", reviewer, "", "")))
        path.write_text("\n".join(cells), "utf-8")
        assert imported(path) == {"stored": 1}
    assert [row[2] for row in held(database_url)] == ["ada", "bob"]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize(
    ("before", "delimiter"),
    [
        ([], ";"),
        ([""], ","),
        (["", "  ", ";;;;;"], "\t"),
        (["sep=;"], ";"),
        (["SEP=|"], "|"),
        (['"sep=,"'], ","),
        (["", "sep=\t", ""], "\t"),
    ],
)
def test_a_table_is_read_however_a_spreadsheet_writes_it(
    database_url: str, task: UUID, tmp_path: Path, before: list[str], delimiter: str, encoding: str, ending: str
) -> None:
    path = tmp_path / "labels.csv"
    cells = [
        HEAD.split(","),
        [str(task), "0", "partly", "ada", "", f'"caf\xe9{delimiter} 1{ending}2"'],
        [str(task), "1", "maybe", "ada", "", ""],
    ]
    text = ending.join([*before, *(delimiter.join(row) for row in cells), ""])
    bom = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(bom + text.encode(encoding))
    done = run("import", path, "--json", exit_code=1)
    assert json.loads(done.stdout) == {"stored": 1, "rejected": 1}
    # The note has a line more.
    assert f"line {len(before) + 4}: bad_label" in done.stderr
    assert rows(database_url, "SELECT note FROM review_labels") == [{"note": f"caf\xe9{delimiter} 1{ending}2"}]


def test_lines_of_json_may_be_utf_16_and_what_is_no_character_does_not_stop_them(
    database_url: str, task: UUID, tmp_path: Path
) -> None:
    path = tmp_path / "labels.jsonl"
    row = json.dumps({"task_id": str(task), "sentence_index": 0, "label": "partly", "reviewer": "ada", "note": "x"})
    half = row.replace('"x"', '"\ud800"').replace("ada", "bob")
    path.write_bytes(b"\xff\xfe" + f"{row}\r\n{half}\r\n".encode("utf-16-le", "surrogatepass") + b"\n")
    assert imported(path, exit_code=1) == {"stored": 2, "rejected": 1}
    assert [row["note"] for row in rows(database_url, "SELECT note FROM review_labels ORDER BY id")] == ["x", "\ufffd"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the head lacks label, sentence_index"),
        (b"task_id,label\n", "the head lacks sentence_index, annotator or reviewer"),
        (b"interaction_id,label,sentence_index,reviewer\n", "the head lacks app"),
        (b"task_id,label,sentence_index,reviewer,Label\n", "a column twice: label"),
        ("task_id,label".encode("utf-16"), "the head lacks sentence_index"),
        (b'"task_id"s,label\n', "the head is no CSV"),
        (b"\n \n\r\n", "the head lacks label"),
        (b"sep=;\r\n", "the head lacks label"),
        (b"[{", "not JSON"),
        (HEAD.encode() + b"\n" + b"x" * (MAX_LINE_BYTES + 2), "this is no table"),
    ],
)
def test_a_file_that_is_no_table_of_labels_is_refused_with_what_it_lacks(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    assert told in refusal(path)


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(task: UUID, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    filler = "\n".join(f"{task},0,partly,r{number},," for number in range(5000))
    path.write_text(f'{HEAD}\n{task},1,partly,ada,,"open\n{filler}\n', "utf-8")
    counts = imported(path, exit_code=1)
    assert counts["rejected"] < 5
    assert counts["stored"] > 2000


def test_lines_of_json_go_in_with_the_bad_ones_told(database_url: str, task: UUID, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    native = label(task, 0, "partly").model_dump_json(by_alias=True, exclude_none=True)
    row = json.dumps({"app": "shop", "interaction_id": "id-0", "sentence_index": 1, "label": "ok", "reviewer": "bob"})
    lines = [native, "", "{", "[]", row, row.replace('"ok"', '"supported"'), "x" * (MAX_LINE_BYTES + 9), native]
    path.write_text("\ufeff" + "\r\n".join(lines), "utf-8")
    done = run("import", path, "--json", "--format", "jsonl", exit_code=1)
    assert json.loads(done.stdout) == {"stored": 2, "repeated": 1, "rejected": 4}
    assert [line.split(": ")[:2] for line in done.stderr.splitlines() if line.startswith("line")] == [
        ["line 3", "invalid_json"],
        ["line 4", "not_an_object"],
        ["line 5", "bad_label"],
        ["line 7", "too_large"],
    ]
    assert len(held(database_url)) == 2


class Project:
    """A project of Label Studio that asks about one task, and writes its export to a file."""

    def __init__(self, task: UUID, path: Path) -> None:
        self.path = path
        sentences = [{"index": index, "start": index, "end": index + 1} for index in (*ASKED, 9)]
        self._data = {"task_id": str(task), "answer": "An answer.", "sentences": sentences}

    def export(self, *annotations: dict[str, object]) -> Path:
        tasks = [{"id": 1, "data": self._data, "annotations": list(annotations)}]
        self.path.write_text(json.dumps(tasks), "utf-8")
        return self.path


def annotation(*words: str | None, hour: int = 10, by: int | None = 1, number: int = 3) -> dict[str, object]:
    """What a user says of the sentences in their order, and how good the answer is; None: nothing."""
    results: list[dict[str, object]] = [
        {"from_name": f"label_{position}", "type": "choices", "value": {"choices": [word]}}
        for position, word in enumerate(words)
        if word is not None
    ]
    results.append({"from_name": "quality", "type": "rating", "value": {"rating": 2}})
    return {"id": number, "completed_by": by, "updated_at": f"2026-11-30T{hour}:00:00Z", "result": results}


@pytest.fixture
def project(task: UUID, tmp_path: Path) -> Project:
    return Project(task, tmp_path / "export.json")


BOTH = [("id-0", 0, "1", "unsupported"), ("id-0", 1, "1", "supported")]


@pytest.mark.parametrize(
    "refused",
    [
        {"words": ("partly", "supported"), "by": None},
        {"words": ("partly", "supported"), "by": None, "hour": 12},
        {"words": ("partly", "perhaps"), "hour": 12},
        {"words": ("partly", None, "supported"), "hour": 12},
    ],
    ids=["a user that is gone", "and later", "a word that is no label", "a sentence that is not there"],
)
def test_an_annotation_of_which_a_label_is_refused_changes_nothing(
    database_url: str, project: Project, refused: dict[str, Any]
) -> None:
    assert imported(project.export(annotation("unsupported", "supported"))) == {"stored": 2, "passed_over": 1}
    assert held(database_url) == BOTH
    project.export(annotation(*refused.pop("words"), **refused))
    counts = imported(project.path, exit_code=1)
    assert counts["rejected"] + counts.get("withheld", 0) == 2
    assert imported(project.path, "--dry-run", exit_code=1) == counts
    assert held(database_url) == BOTH
    # Those of others go in.
    other = annotation("partly", by=2, number=4)
    project.export(annotation("partly", "perhaps", hour=13), other)
    assert imported(project.path, exit_code=1) == {"rejected": 1, "withheld": 1, "stored": 1, "passed_over": 2}
    assert [row for row in held(database_url) if row[2] == "1"] == BOTH


def test_an_export_of_label_studio_goes_in_and_again_after_a_change(
    database_url: str, task: UUID, tmp_path: Path
) -> None:
    path = tmp_path / "export.json"
    sentences = [{"index": index, "start": index, "end": index + 1} for index in ASKED]

    def write(updated_at: str, *words: str) -> None:
        results = [
            {"from_name": f"label_{number}", "type": "choices", "value": {"choices": [word]}}
            for number, word in enumerate(words)
        ]
        annotation = {"id": 3, "completed_by": 1, "updated_at": updated_at, "result": results}
        data = {"task_id": str(task), "answer": "An answer.", "sentences": sentences}
        path.write_text(json.dumps([{"id": 1, "data": data, "annotations": [annotation]}]), "utf-8")

    write("2026-11-30T10:00:00Z", "unsupported", "supported")
    assert imported(path) == {"stored": 2}
    assert task_state(database_url, task) == ("labelled", 1)
    write("2026-11-30T11:00:00Z", "partly")
    assert imported(path) == {"withdrawn": 1, "corrected": 1}
    assert held(database_url) == [("id-0", 0, "1", "partly")]
    assert task_state(database_url, task) == ("open", 1)
    assert imported(path) == {"repeated": 1}


def test_an_export_that_is_imported_again_restores_what_was_withdrawn_without_it(
    database_url: str, project: Project
) -> None:
    first = annotation("unsupported", "supported")
    assert imported(project.export(first)) == {"stored": 2, "passed_over": 1}
    assert imported(project.export({**first, "was_cancelled": True})) == {"withdrawn": 1}
    assert held(database_url) == []
    assert imported(project.export(first)) == {"restored": 2, "passed_over": 1}
    assert held(database_url) == BOTH
    assert imported(project.path) == {"repeated": 2, "passed_over": 1}
    # What the tool says is later stays later.
    assert imported(project.export(annotation("unsupported", hour=12)))["withdrawn"] == 1
    assert imported(project.export(first)) == {"repeated": 2, "passed_over": 1}
    assert held(database_url) == BOTH[:1]


def exported(path: Path, form: str) -> Path:
    done = CliRunner().invoke(app, ["review", "export", str(path), "--format", form])
    assert done.exit_code == 0, (done.output, done.exception)
    return path


def test_the_table_that_we_export_comes_back_filled_in(database_url: str, task: UUID, tmp_path: Path) -> None:
    text = exported(tmp_path / "tasks.csv", "csv").read_text("utf-8-sig")
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(table) == 2
    path = tmp_path / "labels.csv"
    assert imported(tmp_path / "tasks.csv") == {"no_label": 2}
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), delimiter=";")
        writer.writeheader()
        writer.writerows({**row, "label": "Partly", "reviewer": "ada"} for row in table)
    assert imported(path) == {"stored": 2}
    assert task_state(database_url, task) == ("labelled", 1)


def test_the_tasks_that_we_export_for_label_studio_come_back_as_labels(
    database_url: str, task: UUID, tmp_path: Path
) -> None:
    first, second = json.loads(exported(tmp_path / "tasks.json", "label-studio").read_text("utf-8"))
    for number, (sent, given) in enumerate(((first, ("unsupported", "conflict")), (second, ("supported",)))):
        results = [
            {"from_name": f"{control}_0", "type": "choices", "value": {"choices": [word]}}
            for control, word in zip(("label", "detail"), given, strict=False)
        ]
        sent["annotations"] = [{"id": number, "completed_by": 1, "result": results}]
    path = tmp_path / "labels.json"
    path.write_text(json.dumps([first, second]), "utf-8")
    assert imported(path) == {"stored": 2}
    assert task_state(database_url, task) == ("labelled", 1)
    assert held(database_url) == [("id-0", 0, "1", "unsupported"), ("id-0", 1, "1", "supported")]


def test_more_rows_than_a_batch_go_in_by_batches(
    database_url: str, task: UUID, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_import, "BATCH_LABELS", 7)
    path = tmp_path / "labels.csv"
    path.write_text("\n".join([HEAD, *(f"{task},0,partly,r{number},," for number in range(40))]), "utf-8")
    assert imported(path, "--tool", "sheet") == {"stored": 40}
    assert rows(database_url, "SELECT DISTINCT tool, source FROM review_labels") == [
        {"tool": "sheet", "source": "file"}
    ]


def test_agreement_prints_names_so_that_they_do_nothing_but_be_read(store: Store, task: UUID) -> None:
    names = ("\x1b[2Jada", "bob\nshop: all reviewers: 9 of 9 sentences agreed")
    store.labels.add([label(task, index, "supported", who) for who in names for index in ASKED], "file")
    first, second = run("agreement").stdout.splitlines()
    assert first.startswith("shop: all reviewers: 2 of 2 sentences agreed")
    assert second.startswith(r"shop: \x1b[2Jada and bob\nshop: all reviewers: 9 of 9 sentences agreed: 2 of 2")
    pairs = [json.loads(line)["pair"] for line in run("agreement", "--json").stdout.splitlines()]
    assert pairs == [None, list(names)]


def test_agreement_is_shown_for_all_and_for_each_pair(store: Store, task: UUID) -> None:
    assert run("agreement").stdout == "no sentence has labels of two reviewers\n"
    words = {"ada": ("supported", "unsupported"), "bob": ("not_a_claim", "partly")}
    store.labels.add([label(task, index, given[index], who) for who, given in words.items() for index in ASKED], "file")
    assert run("agreement").stdout.splitlines() == [
        f"shop: {who}: 2 of 2 sentences agreed, alpha 1.000 (0.000 over the five labels)"
        for who in ("all reviewers", "ada and bob")
    ]
    found = [json.loads(line) for line in run("agreement", "--app", "shop", "--json").stdout.splitlines()]
    assert [(one["pair"], one["sentences"], one["alpha"]) for one in found] == [
        (None, 2, 1.0),
        (["ada", "bob"], 2, 1.0),
    ]
