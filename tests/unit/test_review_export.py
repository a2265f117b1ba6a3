"""Review tasks in files: what was written is read back as the tools read it."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from schemas.envelope import JsonObject
from schemas.label_reading import read_label_row
from schemas.review_label import Detail, Label
from schemas.review_task import ReviewTask
from tests.unit.review_tasks import review_task
from worker.cli import app
from worker.errors import InputFileError
from worker.review.export import CSV_COLUMNS, MAX_CELL_CHARS, export_tasks, guarded
from worker.review.formats import ExportFormat
from worker.review.label_studio import CONFIG, label_studio_tasks, marked


def exported(tmp_path: Path, file_format: ExportFormat, tasks: list[ReviewTask]) -> Path:
    path = tmp_path / "tasks"
    counts: list[int] = []
    assert export_tasks(tasks, file_format, path, counts.append) == len(tasks) == sum(counts)
    return path


@pytest.mark.parametrize("count", [0, 1, 3])
def test_label_studio_gets_an_array_of_a_task_for_each_asked_sentence(tmp_path: Path, count: int) -> None:
    tasks = [review_task()] * count
    found = json.loads(exported(tmp_path, ExportFormat.LABEL_STUDIO, tasks).read_bytes())
    assert found == [*label_studio_tasks(review_task())] * count
    assert len(found) == 2 * count


def test_a_result_of_label_studio_leads_back_to_its_task_and_sentence() -> None:
    root = ET.fromstring(CONFIG)  # noqa: S314 - our own
    controls = [node for node in root.iter() if node.get("toName")]
    objects = {
        node.attrib["name"]: node.attrib["value"] for node in root.iter() if {"name", "value"} <= set(node.keys())
    }
    assert [node.attrib["name"] for node in controls] == ["label_0", "detail_0", "note_0"]
    assert {objects[node.attrib["toName"]] for node in controls} == {"$sentences[0].text"}
    for index, sent in enumerate(label_studio_tasks(review_task())):
        result: JsonObject = {"from_name": "label_0", "value": {"choices": ["partly"]}}
        annotation: JsonObject = {"id": 3, "completed_by": 1, "result": [result]}
        labels = read_label_row({**sent, "annotations": [annotation]}, received_at=datetime.now(UTC)).labels
        assert [(one.task_id, one.sentence_index, one.label) for one in labels if one.label] == [
            (review_task().task_id, index, "partly")
        ]


def test_the_configuration_asks_for_fields_that_a_task_has() -> None:
    asked = re.findall(r'(?:value|on)="\$(\w+)', CONFIG)
    for sent in label_studio_tasks(review_task()):
        assert {"question", "answer_marked", "passages", "sentences"} == set(asked) <= sent["data"].keys()


def test_each_choice_has_a_key_of_its_own_however_many_sentences_are_asked_about() -> None:
    root = ET.fromstring(CONFIG)  # noqa: S314 - our own
    keys = {choice.attrib["value"]: choice.attrib["hotkey"] for choice in root.iter("Choice")}
    assert keys.keys() == {*Label, *Detail}
    assert len(set(keys.values())) == len(keys)
    # What is repeated has its keys repeated, and one key would label all of it.
    assert not [choice for repeater in root.iter("Repeater") for choice in repeater.iter("Choice")]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("It is so. No. Yes.", "It is so. No. Ye<mark>s.</mark>"),
        (
            "<b>A&amp;</b>\n\nB. <script>x",
            "&lt;b&gt;A&amp;amp;&lt;/b&gt;<br><br>B<mark>. &lt;script</mark>&gt;x",
        ),
    ],
)
def test_the_asked_sentence_is_marked_in_the_answer_and_nothing_else_is_markup(answer: str, shown: str) -> None:
    asked = review_task().sentences[1].model_copy(update={"start": 16, "end": 25})
    assert marked(answer, asked).startswith(shown)


# Not with CR: where a sentence ends between it and LF, there are two ends of lines.
@given(st.text(st.characters(exclude_characters="\r")), st.integers(0, 40), st.integers(0, 40))
def test_a_browser_shows_the_whole_answer_whatever_stands_in_it(answer: str, start: int, length: int) -> None:
    asked = review_task().sentences[1].model_copy(update={"start": start, "end": start + length})
    shown = marked(answer, asked)
    assert set(re.findall(r"<[^>]*>", shown)) <= {"<br>", "<mark>", "</mark>"}
    assert shown.count("<mark>") == shown.count("<") - shown.count("<br>") - 1 == 1
    read = unescape(re.sub(r"</?mark>", "", shown).replace("<br>", "\n"))
    assert read.split("\n") == answer.split("\n")


def test_our_score_goes_along_and_no_answer_is_suggested() -> None:
    assert [task["predictions"] for task in label_studio_tasks(review_task())] == [
        [{"model_version": review_task().scorer, "score": score, "result": []}] for score in (-0.5, 1.5)
    ]


def test_the_spreadsheet_has_a_row_for_each_asked_sentence_and_no_formula(tmp_path: Path) -> None:
    path = exported(tmp_path, ExportFormat.CSV, [review_task()])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        first, second = csv.DictReader(file)
    task = review_task()
    assert list(first) == [*CSV_COLUMNS, "passage_1", "passage_2"]
    read = [f"'{task.answer}", "Which?", *2 * ["'@" + "ä" * 19]]
    assert list(first.values()) == [str(task.task_id), "0", "", "", "", "'=SUM(A1) is it. ", *read]
    assert list(second.values()) == [str(task.task_id), "1", "", "", "", "Für 🚂 nicht. ", *read]


def test_the_spreadsheet_shows_all_passages_of_each_task_and_nothing_that_would_sway_its_reader(tmp_path: Path) -> None:
    sizes = (1, 3, 0)
    path = exported(tmp_path, ExportFormat.CSV, [review_task(passages=size) for size in sizes])
    with path.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    assert head[len(CSV_COLUMNS) :] == ["passage_1", "passage_2", "passage_3"]
    assert {len(row) for row in rows} == {len(head)}
    assert [sum(map(bool, row[len(CSV_COLUMNS) :])) for row in rows] == [1, 1, 3, 3, 0, 0]
    assert not {"score", "flagged", "supporting_passage"} & set(head)
    told = {cell for row in rows for cell in row}
    assert not {"-0.5", "1.5", "true", "false"} & told


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@A1", "\t=1", "  =1", "\r=1", "\n=1", "＝1"])
def test_what_a_spreadsheet_would_calculate_gets_an_apostrophe(text: str) -> None:
    assert guarded(text) == f"'{text}"


def test_other_text_stays_and_no_cell_is_larger_than_excel_holds() -> None:
    assert guarded("a = b\nsecond line") == "a = b\nsecond line"
    assert len(guarded("=" * 100_000)) == MAX_CELL_CHARS


def test_a_line_is_a_message_of_the_contract(tmp_path: Path) -> None:
    lines = exported(tmp_path, ExportFormat.JSONL, [review_task()] * 2).read_bytes().splitlines()
    assert [ReviewTask.model_validate_json(line) for line in lines] == [review_task()] * 2


def test_a_file_that_may_hold_labels_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "filled-in.csv"
    path.write_text("somebody's work")
    with pytest.raises(InputFileError, match="is there already"):
        export_tasks([review_task()], ExportFormat.CSV, path)
    assert path.read_text() == "somebody's work"


def test_an_export_that_breaks_off_leaves_no_file(tmp_path: Path) -> None:
    def breaks() -> Iterator[ReviewTask]:
        yield review_task()
        raise ConnectionError

    with pytest.raises(InputFileError):
        export_tasks(breaks(), ExportFormat.JSONL, tmp_path / "tasks")
    assert list(tmp_path.iterdir()) == []


def test_the_configuration_is_printed_as_it_is() -> None:
    assert CliRunner().invoke(app, ["review", "label-studio-config"]).stdout == CONFIG
