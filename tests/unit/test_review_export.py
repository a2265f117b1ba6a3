"""Review tasks in files: what was written is read back as the tools read it."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from schemas.review_task import ReviewTask
from tests.unit.review_tasks import review_task
from worker.cli import app
from worker.errors import InputFileError
from worker.review.export import CSV_COLUMNS, MAX_CELL_CHARS, export_tasks, guarded
from worker.review.formats import ExportFormat
from worker.review.label_studio import CONFIG, label_studio_task


def exported(tmp_path: Path, file_format: ExportFormat, tasks: list[ReviewTask]) -> Path:
    path = tmp_path / "tasks"
    counts: list[int] = []
    assert export_tasks(tasks, file_format, path, counts.append) == len(tasks) == sum(counts)
    return path


def repeated(config: str, sizes: dict[str, int]) -> ET.Element:
    """The configuration as Label Studio unrolls it: children of a Repeater once for each item of its list."""
    root = ET.fromstring(config)  # noqa: S314 - our own
    for parent in root.iter():
        for repeater in parent.findall("Repeater"):
            inner = "".join(ET.tostring(child, encoding="unicode") for child in repeater)
            count = sizes[repeater.attrib["on"].removeprefix("$")]
            unrolled = "".join(inner.replace(repeater.attrib["indexFlag"], str(at)) for at in range(count))
            parent.append(ET.fromstring(f"<View>{unrolled}</View>"))  # noqa: S314 - as above
    return root


@pytest.mark.parametrize("count", [0, 1, 3])
def test_label_studio_gets_an_array_of_tasks(tmp_path: Path, count: int) -> None:
    tasks = [review_task()] * count
    found = json.loads(exported(tmp_path, ExportFormat.LABEL_STUDIO, tasks).read_bytes())
    assert found == [label_studio_task(review_task())] * count


def test_a_result_of_label_studio_leads_back_to_its_task_and_sentence() -> None:
    data = label_studio_task(review_task())["data"]
    unrolled = repeated(CONFIG, {"sentences": len(data["sentences"]), "passages": len(data["passages"])})
    controls = [node for node in unrolled.iter() if node.get("toName") and "{{" not in node.attrib["name"]]
    objects = {node.attrib["name"]: node.attrib["value"] for node in unrolled.iter("Text") if "name" in node.attrib}
    named = {}
    for control in controls:
        name, position = control.attrib["name"].rsplit("_", 1)
        named[control.attrib["name"]] = data["sentences"][int(position)]["index"]
        assert name in {"label", "detail", "note"}
        assert objects[control.attrib["toName"]] == f"$sentences[{position}].text"
    assert named == {f"{name}_{at}": index for name in ("label", "detail", "note") for at, index in enumerate([0, 1])}
    assert data["task_id"] == str(review_task().task_id)
    assert [sentence["text"] for sentence in data["sentences"]] == ["=SUM(A1) is it. ", "Für 🚂 nicht. "]


def test_the_configuration_asks_for_fields_that_a_task_has_and_flags_each_attribute_once() -> None:
    data = label_studio_task(review_task())["data"]
    asked = re.findall(r'(?:value|on)="\$(\w+)', CONFIG)
    assert {"question", "answer", "passages", "sentences"} == set(asked) <= data.keys()
    # Label Studio replaces the first in an attribute only.
    assert not re.search(r'"[^"]*\{\{idx\}\}[^"]*\{\{idx\}\}', CONFIG)


def test_our_score_goes_along_and_no_answer_is_suggested() -> None:
    assert label_studio_task(review_task())["predictions"] == [
        {"model_version": review_task().scorer, "score": -0.5, "result": []}
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
