"""Messages of files and folders, as they would be sent."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from worker.errors import InputFileError
from worker.terminal.inputs import Message, input_bytes, read_messages

ROWS = [{"answer": f"A{number}", "contexts": ["c"]} for number in range(3)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def values(path: Path) -> list[bytes | None]:
    return [message.value for message in read_messages(path)]


def written(path: Path, value: bytes) -> Path:
    path.write_bytes(value)
    return path


def test_each_line_is_a_message_and_blank_ones_are_none(tmp_path: Path) -> None:
    file = written(tmp_path / "rows.jsonl", b"\n" + LINES.replace(b"\n", b"\r\n\r\n"))
    assert [json.loads(value or b"") for value in values(file)] == ROWS
    assert [message.place for message in read_messages(file)] == ["rows.jsonl:2", "rows.jsonl:4", "rows.jsonl:6"]


def test_a_line_that_is_no_json_is_sent_as_it_is(tmp_path: Path) -> None:
    assert values(written(tmp_path / "a", b"{broken\n" + LINES))[:2] == [b"{broken", LINES.splitlines()[0]]
    assert values(written(tmp_path / "b", LINES + b"{broken"))[-1] == b"{broken"


@pytest.mark.parametrize("row", [ROWS, ROWS[0]])
def test_one_value_over_several_lines_is_one_message(tmp_path: Path, row: object) -> None:
    pretty = json.dumps(row, indent=2).encode()
    assert values(written(tmp_path / "pretty.json", pretty)) == [pretty]


def test_what_is_no_text_is_one_message(tmp_path: Path) -> None:
    value = b"\n\x00\x12{}\n{}\n"
    assert values(written(tmp_path / "trace.bin", value)) == [value]


def test_an_empty_file_has_no_message(tmp_path: Path) -> None:
    assert values(written(tmp_path / "empty", b"")) == []
    assert values(written(tmp_path / "blank", b"\n \n")) == []


def test_a_compressed_file_is_read_as_what_is_in_it(tmp_path: Path) -> None:
    assert values(written(tmp_path / "rows.jsonl.gz", gzip.compress(LINES))) == LINES.splitlines()


def test_a_broken_compressed_file_is_named(tmp_path: Path) -> None:
    for spoilt in (gzip.compress(LINES)[:-9], b"\x1f\x8b" + LINES):
        with pytest.raises(InputFileError, match=r"rows\.gz: "):
            values(written(tmp_path / "rows.gz", spoilt))


def test_each_row_of_a_parquet_file_is_a_message(tmp_path: Path) -> None:
    table = pa.table({"answer": ["A", None], "contexts": [["c", "d"], []], "raw": [b"x", b"y"], "at": [1, 2]})
    table = table.set_column(3, "at", pa.array([0, 1], pa.timestamp("ms", "UTC")))
    parquet.write_table(table, tmp_path / "rows.parquet")
    first, second = (json.loads(value or b"") for value in values(tmp_path / "rows.parquet"))
    assert first == {"answer": "A", "contexts": ["c", "d"], "raw": "x", "at": "1970-01-01T00:00:00+00:00"}
    assert (second["answer"], second["contexts"]) == (None, [])


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot be read as Parquet"):
        values(written(tmp_path / "rows.parquet", b"PAR1 and no more"))


def test_a_folder_has_its_messages_in_order_with_headers_and_keys(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        written(tmp_path / f"message-{number}.bin", b"%d" % number)
    told = [{"message": 2, "headers": [["ce_id", "\xe4"], ["none", None]], "key": "k"}]
    (tmp_path / "headers.json").write_text(json.dumps(told))
    found = list(read_messages(tmp_path))
    assert [message.value for message in found] == [b"1", b"2", b"10"]
    assert found[1] == Message("message-2.bin", b"2", (("ce_id", b"\xe4"), ("none", None)), b"k")
    assert found[0] == Message("message-1.bin", b"1")


def test_a_folder_without_messages_or_with_unusable_headers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"no message-1\.bin"):
        values(tmp_path)
    written(tmp_path / "message-1.bin", b"1")
    for spoilt in (b"{", b"[1]", b'[{"headers": []}]', b'[{"message": 1, "headers": [["only"]]}]'):
        written(tmp_path / "headers.json", spoilt)
        with pytest.raises(InputFileError, match=r"headers\.json: a list is wanted"):
            values(tmp_path)


def test_a_message_goes_by_its_key_or_its_interaction_or_itself() -> None:
    assert Message("p", b"{}", key=b"k").sending_key == b"k"
    assert Message("p", b'{"interaction_id": "7", "id": 1}').sending_key == b"7"
    assert Message("p", b'{"id": 1}').sending_key == b"1"
    assert Message("p", b"[").sending_key == Message("q", b"[").sending_key != Message("p", b"{").sending_key


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.binary(max_size=200))
def test_no_byte_of_a_file_is_lost_and_all_are_counted(tmp_path: Path, value: bytes) -> None:
    file = written(tmp_path / "any", b"x" + value.replace(b"PAR1", b"").replace(b"\x1f", b""))
    counted: list[int] = []
    found = b"".join(message.value or b"" for message in read_messages(file, counted.append))
    assert b"".join(found.split()) == b"".join(file.read_bytes().split())
    assert sum(counted) == input_bytes(file)
