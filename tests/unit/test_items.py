"""Files of the gasp command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gasp_core.errors import InputError
from gasp_core.items import read_items, write_records


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_json_lines_give_context_or_passages_and_the_row(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl",
        '{"context": "One text.", "answer": "An answer.", "query": "Why?", "label": 1}\n\n'
        '{"passages": ["a", "b"], "answer": "c"}\n',
    )
    first, second = read_items(path)
    assert [passage.text for passage in first.exchange.passages] == ["One text."]
    assert (first.exchange.question, first.row["label"]) == ("Why?", 1)
    assert [passage.id for passage in second.exchange.passages] == ["ctx-1", "ctx-2"]


def test_a_csv_field_may_hold_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "in.csv", '\ufeffcontext,answer\n"line one\nline two",yes it is\n')
    assert read_items(path)[0].exchange.passages[0].text == "line one\nline two"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("in.jsonl", '{"context": "a", "answer": "b"}\nnot json\n', "in.jsonl:2: is not JSON"),
        ("in.jsonl", "[]\n", "in.jsonl:1: is not a JSON object"),
        ("in.jsonl", '{"context": "a"}\n', "in.jsonl:1: needs an 'answer'"),
        ("in.jsonl", '{"answer": "a"}\n', "in.jsonl:1: needs a 'context'"),
        ("in.jsonl", '{"answer": "a", "passages": [1]}\n', "in.jsonl:1: needs a 'context'"),
        ("in.csv", "context\na\n", "in.csv:2: needs an 'answer'"),
        ("in.txt", "", "must be a .jsonl or .csv"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_items(write(tmp_path / name, text))
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_items(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_what_is_written_can_be_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_records([{"answer": 'a "quoted" line\nand more', "context": "é"}], str(path))
    item = read_items(str(path))[0]
    assert (item.exchange.answer, item.exchange.passages[0].text) == ('a "quoted" line\nand more', "é")
