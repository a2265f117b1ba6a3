"""What would be read from messages is shown, and nothing is left out in silence."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import worker.cli
from worker.inspection import inspection
from worker.inspection.inspection import Inspected, Inspection, ReadExchange, ReadNothing, Summary
from worker.inspection.page import inspected_json, inspected_text, summary_text
from worker.settings.reading import Reading
from worker.terminal.inputs import Message

TRACE = "0b53a1c2-93e4-4c5b-8d1f-2f2c8d1e6a10"
CHILD = "5d1f9a02-77aa-4e57-9d1c-8a55cf2b9f33"
ROW = {
    "id": "7",
    "app": "desk",
    "question": "Q?",
    "contexts": ["c"],
    "answer": "A.",
    "timestamp": "2026-11-30T09:00:00Z",
}


def run(name: str, run_id: str, **facts: Any) -> dict[str, Any]:
    """A run as LangSmith's client posts it, over."""
    times = {"start_time": "2026-11-30T09:00:00+00:00", "end_time": "2026-11-30T09:00:01+00:00"}
    return {"id": run_id, "trace_id": TRACE, "name": name, "session_name": "desk", **times, **facts}


ROOT = run("chain", TRACE, run_type="chain", inputs={"input": "Q?"}, outputs={"answer": "A."})
DOCUMENT = {"id": "kb-1", "page_content": "c", "metadata": {}, "type": "Document"}
RETRIEVER = run(
    "retriever", CHILD, run_type="retriever", parent_run_id=TRACE, inputs={}, outputs={"documents": [DOCUMENT]}
)


def message(value: object, place: str = "m") -> Message:
    return Message(place, json.dumps(value).encode())


def read(*messages: Message) -> list[Inspected]:
    return list(Inspection(Reading()).read(messages))


def exchange(*messages: Message) -> ReadExchange:
    (found,) = read(*messages)
    assert isinstance(found, ReadExchange)
    return found


def test_a_row_is_an_exchange_and_what_it_lacks_is_named() -> None:
    found = exchange(message(ROW, "f:1"))
    assert (found.format, found.sources, found.missing) == ("flat", ("f:1",), ())
    bare = exchange(message({"answer": " ", "contexts": [" "]}))
    assert bare.missing == ("question", "passages", "answer", "id", "time")


@pytest.mark.parametrize("open_at_a_time", [1, 9])
def test_runs_that_name_only_the_run_above_are_one_trace(monkeypatch: pytest.MonkeyPatch, open_at_a_time: int) -> None:
    monkeypatch.setattr(inspection, "MAX_OPEN_TRACES", open_at_a_time)
    events = [
        {"event": "chain_start", "run_id": "a", "parent_run_id": None, "data": "Q?"},
        {"event": "chain_start", "run_id": "b", "parent_run_id": "a", "data": "Q?"},
        {"event": "retriever_end", "run_id": "c", "parent_run_id": "b", "data": [DOCUMENT]},
        {"event": "chain_end", "run_id": "b", "parent_run_id": "a", "data": "Q?"},
        {"event": "chain_end", "run_id": "a", "parent_run_id": None, "data": {"answer": "A."}},
    ]
    found = exchange(*(message(event, f"f:{number}") for number, event in enumerate(events)))
    assert (found.interaction.answer, [passage.id for passage in found.interaction.passages]) == ("A.", ["kb-1"])
    assert set(found.sources) == {f"f:{number}" for number in range(5)}


def test_a_message_without_an_exchange_says_why() -> None:
    assert read(Message("m", b"{")) == [ReadNothing("dead_lettered", "invalid_json", "not JSON at character 1", ("m",))]
    assert read(Message("m", None, key=b"k")) == [ReadNothing("skipped", "tombstone", "", ("m",))]


def test_a_trace_in_several_messages_is_one_exchange_in_any_order() -> None:
    pieces = [message({"post": [ROOT]}, "1"), message({"post": [RETRIEVER]}, "2"), message({"post": [ROOT]}, "3")]
    for order in permutations(pieces):
        found = exchange(*order)
        assert found.interaction.passages[0].id == "kb-1"
        assert (found.format, sorted(found.sources), found.missing) == ("langsmith", ["1", "2", "3"], ())


def test_a_trace_whose_end_is_not_there_says_so() -> None:
    begun = {**ROOT, "end_time": None}
    assert "end of the trace" in exchange(message({"post": [begun, RETRIEVER]})).missing


def test_a_trace_that_retrieved_nothing_is_no_rag() -> None:
    assert read(message({"post": [ROOT]})) == [ReadNothing("skipped", "not_rag", "trace of 1 messages", ("m",))]


def test_only_so_many_traces_are_held_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MAX_OPEN_TRACES", 1)
    other = {**ROOT, "id": CHILD, "trace_id": CHILD}
    found = read(message({"post": [ROOT]}, "1"), message({"post": [other]}, "2"), message({"post": [RETRIEVER]}, "3"))
    assert [one.sources for one in found] == [("1",), ("2",), ("3",)]


def test_the_page_shows_everything_and_lets_no_text_out() -> None:
    hostile = {**ROW, "question": "Q\x1b[31m?\u202e", "answer": "A. " * 500, "contexts": ["c"] * 30}
    text = inspected_text(exchange(message(hostile)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "and 10 more" in text
    assert len(text) < 4000


def test_the_json_has_what_was_read() -> None:
    row = json.loads(inspected_json(exchange(message(ROW, "f:1"))))
    expected = {
        "question": "Q?",
        "answer": "A.",
        "passages": [{"id": "ctx-1", "text": "c", "score": None}],
        "app": "desk",
        "format": "flat",
        "sources": ["f:1"],
    }
    assert row | expected == row
    (nothing,) = read(Message("m", b"{"))
    assert json.loads(inspected_json(nothing))["reason"] == "invalid_json"


def test_the_summary_counts_formats_reasons_and_what_is_missing() -> None:
    inspected = Inspection(Reading())
    counts = Summary()
    for found in inspected.read([message(ROW), message({"answer": "A", "contexts": ["c"]}), Message("m", b"{")]):
        counts.count(found)
    text = summary_text(counts, inspected.messages)
    assert text.startswith("3 messages, 2 exchanges\n")
    assert "2  flat  (1 without question, 1 without id, 1 without time)" in text
    assert "1  dead_lettered: invalid_json" in text


def test_the_command_reads_a_folder_and_writes_json(tmp_path: Path) -> None:
    for number, runs in enumerate(([RETRIEVER], [ROOT]), 1):
        (tmp_path / f"message-{number}.bin").write_text(json.dumps({"post": runs}))
    out = tmp_path / "out.jsonl"
    done = CliRunner().invoke(worker.cli.app, ["inspect", str(tmp_path), "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert "2 messages, 1 exchanges" in done.stdout
    (row,) = map(json.loads, out.read_text().splitlines())
    assert (row["question"], row["app"], row["sources"]) == ("Q?", "desk", ["message-1.bin", "message-2.bin"])


def test_the_command_reads_so_many_messages_and_prints_counts_alone(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(3 * (json.dumps(ROW) + "\n"))
    done = CliRunner().invoke(worker.cli.app, ["inspect", str(file), "--limit", "2", "--summary"])
    assert done.stdout.splitlines() == ["2 messages, 2 exchanges", "         2  flat"]


def test_a_format_that_is_set_takes_nothing_else() -> None:
    settings = Reading(format="desk=langsmith")
    assert isinstance(next(Inspection(settings).read([message(ROW)])), ReadExchange)
    (refused,) = Inspection(settings, topic="desk").read([message(ROW)])
    assert isinstance(refused, ReadNothing)
    assert (refused.reason, refused.detail.split(":")[0]) == ("wrong_shape", "langsmith")
