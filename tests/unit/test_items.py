"""Files of the gasp command, and the rows in them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gasp_core.errors import InputError
from gasp_core.gasp_rag.items import parse_item, read_items, write_records


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_rows_of_json_lines_come_as_they_are(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl",
        '{"context": "One text.", "answer": "An answer.", "query": "Why?", "label": 1}\n\n'
        '{"passages": ["a", "b"], "answer": "c"}\n',
    )
    assert read_items(path) == [
        {"context": "One text.", "answer": "An answer.", "query": "Why?", "label": 1},
        {"passages": ["a", "b"], "answer": "c"},
    ]


def test_a_csv_field_may_hold_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", '\ufeffcontext,answer\n"line one\nline two",yes it is\n')
    assert read_items(path) == [{"context": "line one\nline two", "answer": "yes it is"}]


def test_a_line_separator_inside_a_json_text_ends_no_line(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", '{"context": "a\u2028b", "answer": "c"}\n')
    assert read_items(path)[0]["context"] == "a\u2028b"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("in.jsonl", '{"context": "a", "answer": "b"}\nnot json\n', "in.jsonl:2: is not JSON"),
        ("in.jsonl", "[]\n", "in.jsonl:1: is not a JSON object"),
        ("in.jsonl", '{"context": "a"}\n', "in.jsonl:1: needs an 'answer'"),
        ("in.jsonl", '{"answer": "a"}\n', "in.jsonl:1: needs a 'context'"),
        ("in.jsonl", '{"answer": "a", "passages": [1]}\n', "in.jsonl:1: needs a 'context'"),
        ("in.csv", "context\na\n", "in.csv:2: needs an 'answer'"),
        ("in.csv", "context,answer\none, two,three\n", "in.csv:2: has more fields than the first line names"),
        ("in.txt", "", "must be a .jsonl or .csv"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write(tmp_path / name, text))
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_items(tmp_path / "none.jsonl")


@pytest.mark.parametrize("name", ["context", "contexts", "passages"])
def test_a_context_is_one_text_or_a_list_whose_texts_are_the_chunks(name: str) -> None:
    one = parse_item({name: "a text", "answer": "b"})
    several = parse_item({name: ["a", "", "b"], "answer": "b", "question": "Why?"})
    assert ([passage.text for passage in one.exchange.passages], one.in_parts) == (["a text"], False)
    assert ([passage.text for passage in several.exchange.passages], several.in_parts) == (["a", "", "b"], True)
    assert [passage.id for passage in several.exchange.passages] == ["ctx-1", "ctx-2", "ctx-3"]
    assert (one.exchange.question, several.exchange.question) == ("", "Why?")


def test_null_is_an_empty_text_or_no_passage_and_gives_way_to_another_name() -> None:
    item = parse_item({"context": None, "answer": None, "query": None})
    assert (item.exchange.passages, item.exchange.answer, item.exchange.question) == ((), "", "")
    other = parse_item({"passages": None, "context": "a", "answer": "b", "query": None, "question": "Why?"})
    assert (other.exchange.passages[0].text, other.exchange.question) == ("a", "Why?")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"context": "a"}, "'answer'"),
        ({"context": "a", "answer": 0}, "'answer'"),
        ({"answer": "a"}, "'context'"),
        ({"answer": "a", "context": {"a": 1}}, "'context'"),
        ({"answer": "a", "context": b"bytes"}, "'context'"),
        ({"answer": "a", "context": "b", "query": 5}, "'query'"),
    ],
)
def test_an_item_that_lacks_a_text_is_refused(row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_item(row)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_what_is_written_can_be_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    record = {"answer": 'a "quoted" line\nand more', "context": "é\u2028"}
    write_records([record], path)
    assert read_items(path) == [record]


def test_csv_has_a_column_for_every_name_and_json_in_a_cell_of_several_values(tmp_path: Path) -> None:
    write_records([{"a": 1, "b": {"gap": 0.5}}, {"a": None, "c": ["é"]}], tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["a"], json.loads(first["b"]), first["c"]) == ("1", {"gap": 0.5}, "")
    assert (second["a"], second["b"], json.loads(second["c"])) == ("", "", ["é"])


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_no_records_give_an_empty_file(tmp_path: Path, suffix: str) -> None:
    write_records([], tmp_path / f"out{suffix}")
    assert (tmp_path / f"out{suffix}").read_bytes() == b""


def test_half_a_surrogate_pair_is_written_as_json_escapes_it(tmp_path: Path) -> None:
    write_records([{"answer": "é \ud83d!"}], tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8")) == {"answer": "é \ud83d!"}
