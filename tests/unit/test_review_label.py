"""Labels as tools and people write them, and what the contract makes of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from schemas.label_reading import Reading, read_label_payload, read_label_row
from schemas.reject_reason import RejectReason
from schemas.review_label import MAX_NOTE_CHARS, Detail, Label, LabelAction, ReviewLabel
from tests.unit.test_json_schema import validator

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
TASK = "6f1d3a5e-0000-4000-8000-000000000001"
NATIVE: dict[str, Any] = {
    "schema": "gasp.review-label.v1",
    "tool": "desk",
    "external_id": "17",
    "task_id": TASK,
    "sentence_index": 2,
    "label": "unsupported",
    "detail": "conflict",
    "reviewer": "ada",
    "note": "see page 4",
    "labelled_at": "2026-11-30T12:00:00Z",
}
ROW: dict[str, Any] = {"task_id": TASK, "sentence_index": "2", "label": "Partly", "reviewer": "ada"}


def read(row: dict[str, Any], tool: str | None = None) -> Reading:
    return read_label_row(row, received_at=NOW, tool=tool)


def label_of(row: dict[str, Any]) -> ReviewLabel:
    reading = read(row)
    assert reading.faults == ()
    (label,) = reading.labels
    return label


def fault_of(row: dict[str, Any]) -> tuple[RejectReason, str]:
    reading = read(row)
    assert reading.labels == ()
    (fault,) = reading.faults
    return fault.reason, fault.detail


# --- the contract ---


def test_a_native_label_is_read_and_written_as_the_published_schema_has_it() -> None:
    label = label_of({**NATIVE, "trace": "an unknown field"})
    assert (label.task_id, label.label, label.detail) == (UUID(TASK), Label.UNSUPPORTED, Detail.CONFLICT)
    assert label.labelled_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    schema = validator("review_label.v1.json")
    schema.validate(NATIVE)
    schema.validate(json.loads(label.model_dump_json(by_alias=True)))
    assert not schema.is_valid({**NATIVE, "sentence_index": "2"})


@pytest.mark.parametrize(
    ("spelling", "label", "detail"),
    [
        ("Supported", Label.SUPPORTED, None),
        (" not a claim ", Label.NOT_A_CLAIM, None),
        ("NOT-A-CLAIM", Label.NOT_A_CLAIM, None),
        ("Can't tell", Label.CANT_TELL, None),
        ("cant tell", Label.CANT_TELL, None),
        ("unsupported", Label.UNSUPPORTED, None),
        ("unsupported:baseless", Label.UNSUPPORTED, Detail.BASELESS),
        ("Unsupported : Conflict", Label.UNSUPPORTED, Detail.CONFLICT),
        ("baseless", Label.UNSUPPORTED, Detail.BASELESS),
        ("CONFLICT", Label.UNSUPPORTED, Detail.CONFLICT),
    ],
)
def test_words_are_read_whatever_their_case_and_spaces(spelling: str, label: Label, detail: Detail | None) -> None:
    read_as = label_of({**NATIVE, "label": spelling, "detail": None})
    assert (read_as.label, read_as.detail) == (label, detail)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"label": "maybe"}, RejectReason.BAD_LABEL),
        ({"label": None, "detail": None}, RejectReason.BAD_LABEL),
        ({"label": "unsupported:maybe", "detail": None}, RejectReason.BAD_LABEL),
        ({"label": "supported"}, RejectReason.BAD_LABEL),
        ({"label": 3}, RejectReason.BAD_LABEL),
        ({"action": "withdraw"}, RejectReason.BAD_LABEL),
        ({"action": "erase"}, RejectReason.WRONG_SHAPE),
        ({"task_id": "17"}, RejectReason.WRONG_SHAPE),
        ({"task_id": None}, RejectReason.WRONG_SHAPE),
        ({"task_id": None, "app": "shop"}, RejectReason.WRONG_SHAPE),
        ({"sentence_index": "2"}, RejectReason.WRONG_SHAPE),
        ({"sentence_index": -1}, RejectReason.WRONG_SHAPE),
        ({"sentence_index": None}, RejectReason.WRONG_SHAPE),
        ({"reviewer": " "}, RejectReason.WRONG_SHAPE),
        ({"reviewer": None}, RejectReason.WRONG_SHAPE),
        ({"reviewer": "a\udc80"}, RejectReason.WRONG_SHAPE),
        ({"external_id": "x" * 501}, RejectReason.WRONG_SHAPE),
        ({"schema": "gasp.review-label.v2"}, RejectReason.WRONG_SHAPE),
        ({"labelled_at": "yesterday"}, RejectReason.WRONG_SHAPE),
        ({"labelled_at": "2026-12-02T00:00Z"}, RejectReason.WRONG_SHAPE),
    ],
)
def test_everything_else_is_strict(wrong: dict[str, Any], reason: RejectReason) -> None:
    found, detail = fault_of({**NATIVE, **wrong})
    assert found is reason
    assert detail


def test_a_label_of_the_future_is_refused_and_one_of_a_clock_that_is_ahead_is_not() -> None:
    assert label_of({**NATIVE, "labelled_at": (NOW + timedelta(minutes=4)).isoformat()})
    reason, detail = fault_of({**NATIVE, "labelled_at": (NOW + timedelta(minutes=6)).isoformat()})
    assert (reason, "future" in detail) == (RejectReason.WRONG_SHAPE, True)


def test_no_fault_quotes_what_stood_there() -> None:
    wrong = dict.fromkeys(("label", "detail", "action", "task_id", "labelled_at"), "a secret")
    for name, value in wrong.items():
        assert "secret" not in fault_of({**NATIVE, name: value})[1]


def test_a_withdrawal_needs_no_place_and_no_reviewer() -> None:
    label = label_of({name: NATIVE[name] for name in ("schema", "tool", "external_id")} | {"action": "Withdraw"})
    assert label.action is LabelAction.WITHDRAW
    assert not label.is_placed


def test_a_long_note_is_cut_rather_than_lost_with_its_label() -> None:
    assert len(label_of({**NATIVE, "note": "x" * 9000}).note or "") == MAX_NOTE_CHARS


def test_bytes_are_repaired_as_those_of_interactions() -> None:
    value = b"\xef\xbb\xbf" + json.dumps({**NATIVE, "note": "a\x00b\ud83d"}).encode()
    (label,) = read_label_payload(value, (), max_bytes=9999, received_at=NOW).labels
    assert label.note == "a\ufffdb\ufffd"
    for broken, reason in ((b"\xff", "invalid_utf8"), (b"[]", "empty_value"), (b"{}", "wrong_shape")):
        (fault,) = read_label_payload(broken, (), max_bytes=9999, received_at=NOW).faults
        assert fault.reason == reason


# --- rows ---


def test_a_row_may_have_numbers_as_text_and_gets_an_external_id_of_reviewer_and_place() -> None:
    label = label_of({**ROW, "at": "2026-11-30 12:00", "sentence_index": " 2.0 ", "note": " ", "text": "The sentence."})
    assert (label.tool, label.external_id) == ("file", f"ada:{TASK}:2")
    assert (label.sentence_index, label.note) == (2, None)
    assert label.labelled_at == datetime(2026, 11, 30, 12, tzinfo=UTC)
    by_interaction = {**ROW, "task_id": "", "app": "shop", "interaction_id": 17}
    assert label_of(by_interaction).external_id == "ada:shop:17:1:2"
    assert len(label_of({**by_interaction, "interaction_id": "x" * 512}).external_id) < 100
    assert read(ROW, tool="sheet").labels[0].tool == "sheet"


def test_a_row_whose_label_is_blank_is_no_label_yet() -> None:
    assert read({**ROW, "label": " "}) == Reading()


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        ("45992.5", "spreadsheet"),
        ("45992", "spreadsheet"),
        ("30.11.2026", "day or month first"),
        ("11/30/2026 10:00", "day or month first"),
        ("3-4-26", "day or month first"),
        ("noon", "no time"),
    ],
)
def test_a_date_of_a_spreadsheet_is_refused_rather_than_guessed(at: str, rule: str) -> None:
    reason, detail = fault_of({**ROW, "at": at})
    assert reason is RejectReason.WRONG_SHAPE
    assert rule in detail


# --- Label Studio ---

ANSWER = "\N{STEAM LOCOMOTIVE}\N{STEAM LOCOMOTIVE} go. It is late. Nobody came."
SENTENCES = [{"index": 1, "start": 7, "end": 18}, {"index": 4, "start": 18, "end": len(ANSWER)}]


def chosen(control: str, word: str) -> dict[str, Any]:
    return {"from_name": control, "to_name": "sentence_0", "type": "choices", "value": {"choices": [word]}}


def event(action: str, *results: dict[str, Any], **annotation: object) -> dict[str, Any]:
    return {
        "action": action,
        "project": {"id": 1},
        "task": {"id": 5, "data": {"task_id": TASK, "answer": ANSWER, "sentences": SENTENCES}},
        "annotation": {
            "id": 17,
            "completed_by": {"id": 3, "email": "ada@example.org"},
            "updated_at": "2026-11-30T12:00:00.5Z",
            "was_cancelled": False,
            "result": list(results),
            **annotation,
        },
    }


def judged(reading: Reading) -> list[tuple[str, str, object, object]]:
    assert reading.faults == ()
    return [(one.action, one.external_id, one.sentence_index, one.label) for one in reading.labels]


def test_an_annotation_becomes_a_label_for_each_of_its_sentences() -> None:
    note = {"from_name": "note_0", "type": "textarea", "value": {"text": ["one", "two"]}}
    reading = read(
        event(
            "ANNOTATION_CREATED",
            chosen("label_0", "unsupported"),
            chosen("detail_0", "conflict"),
            note,
            chosen("label_1", "supported"),
            chosen("detail_1", "baseless"),
        )
    )
    assert judged(reading) == [("label", "17:1", 1, "unsupported"), ("label", "17:4", 4, "supported")]
    first, second = reading.labels
    assert (first.tool, first.reviewer, first.detail, first.note) == (
        "label-studio",
        "ada@example.org",
        "conflict",
        "one\ntwo",
    )
    assert second.detail is None


def test_an_annotation_brings_app_id_and_revision_along_so_that_it_finds_its_answer_without_the_task() -> None:
    sent = event("ANNOTATION_CREATED", chosen("label_0", "supported"))
    sent["task"]["data"] |= {"app": "shop", "interaction_id": "i-1", "revision": 2}
    (label,) = read(sent).labels
    assert (str(label.task_id), label.app, label.interaction_id, label.revision) == (TASK, "shop", "i-1", 2)
    sent["task"]["data"] |= {"app": None, "interaction_id": ["i-1"], "revision": "second"}
    (label,) = read(sent).labels
    assert (str(label.task_id), label.app, label.interaction_id, label.revision) == (TASK, None, None, None)


def test_a_choice_for_a_span_is_about_the_sentence_that_it_lies_in_by_utf_16_units() -> None:
    span = {"start": 9, "end": 20, "choices": ["partly"]}
    reading = read(event("ANNOTATION_CREATED", {"from_name": "grounded", "type": "choices", "value": span}))
    assert judged(reading) == [("label", "17:1", 1, "partly")]


def test_an_update_first_takes_back_what_was_said_before() -> None:
    reading = read(event("ANNOTATION_UPDATED", chosen("label_1", "partly")))
    assert judged(reading) == [("withdraw", "17", None, None), ("label", "17:4", 4, "partly")]
    assert len({one.labelled_at for one in reading.labels}) == 1


def test_a_skipped_annotation_is_no_label_and_a_deleted_one_is_taken_back() -> None:
    choice = chosen("label_0", "partly")
    assert read(event("ANNOTATION_CREATED", choice, was_cancelled=True)) == Reading()
    assert judged(read(event("ANNOTATION_UPDATED", choice, was_cancelled=True))) == [("withdraw", "17", None, None)]
    deleted = {"action": "ANNOTATIONS_DELETED", "project": {}, "annotations": [{"id": 17}, {"id": 18}]}
    assert judged(read(deleted)) == [("withdraw", "17", None, None), ("withdraw", "18", None, None)]
    assert read({"action": "TASKS_CREATED", "project": {}, "tasks": []}) == Reading()


def test_an_exported_task_says_what_holds_of_each_of_its_annotations() -> None:
    created = event("ANNOTATION_CREATED", chosen("label_0", "cant_tell"))
    exported = {**created["task"], "annotations": [created["annotation"], {"id": 18, "was_cancelled": True}]}
    assert judged(read(exported)) == [
        ("withdraw", "17", None, None),
        ("label", "17:1", 1, "cant_tell"),
        ("withdraw", "18", None, None),
    ]


@pytest.mark.parametrize(
    ("results", "annotation", "place"),
    [
        ([chosen("label_2", "partly")], {}, "from_name"),
        ([chosen("label_0", "partly")], {"id": None}, "annotation.id"),
        ([{**chosen("label_0", ""), "value": {"choices": ["partly", "supported"]}}], {}, "choices"),
        ([{"from_name": "x", "type": "choices", "value": {"start": 0, "end": 2, "choices": ["partly"]}}], {}, "value"),
        ([chosen("label_0", "partly")], {"completed_by": None}, "reviewer"),
    ],
)
def test_an_annotation_that_cannot_be_placed_is_refused_with_the_place(
    results: list[dict[str, Any]], annotation: dict[str, object], place: str
) -> None:
    reason, detail = fault_of(event("ANNOTATION_CREATED", *results, **annotation))
    assert reason is RejectReason.WRONG_SHAPE
    assert place in detail


def rating(control: str = "quality") -> dict[str, Any]:
    return {"from_name": control, "to_name": "answer", "type": "rating", "value": {"rating": 4}}


def marked(word: str, start: int = 7, end: int = 18) -> dict[str, Any]:
    return {"from_name": "entity", "type": "labels", "value": {"start": start, "end": end, "labels": [word]}}


@pytest.mark.parametrize(
    "foreign",
    [
        rating(),
        rating("rating_0"),
        chosen("overall", "supported"),
        chosen("overall", "helpful"),
        chosen("tone_1", "supported"),
        marked("PERSON"),
        marked("PERSON", 900, 901),
        {"from_name": "why", "type": "textarea", "value": {"text": ["as it says"]}},
        {"from_name": "pairs", "type": "relation"},
        {"from_name": 3, "value": []},
        "no object",
    ],
)
def test_what_else_a_project_asks_its_people_is_passed_over_and_counted(foreign: Any) -> None:
    reading = read(event("ANNOTATION_CREATED", foreign, chosen("label_0", "partly")))
    assert judged(reading) == [("label", "17:1", 1, "partly")]
    assert reading.passed_over == 1
    alone = read(event("ANNOTATION_CREATED", foreign))
    assert (alone.labels, alone.faults, alone.passed_over) == ((), (), 1)


def bulk(*pairs: tuple[dict[str, Any], dict[str, Any]], action: str = "ANNOTATIONS_CREATED") -> dict[str, Any]:
    """Several tasks and annotations in one event, each in a list of its own."""
    return {
        "action": action,
        "project": {"id": 1},
        "task": [task for task, _ in pairs],
        "annotation": [annotation for _, annotation in pairs],
    }


def pair(number: int, word: str, **annotation: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task of its own answer, and its annotation."""
    sent = event("ANNOTATION_CREATED", chosen("label_0", word), id=number, **annotation)
    data = {**sent["task"]["data"], "task_id": str(UUID(int=number))}
    return {"id": 500 + number, "data": data}, sent["annotation"]


def placed(reading: Reading) -> list[tuple[object, str, object]]:
    assert reading.faults == ()
    return [(one.task_id, one.external_id, one.label) for one in reading.labels]


def test_an_event_of_several_annotations_brings_their_tasks_as_a_list() -> None:
    first, second = pair(1, "partly"), pair(2, "supported")
    wanted = [(UUID(int=1), "1:1", "partly"), (UUID(int=2), "2:1", "supported")]
    assert placed(read(bulk(first))) == wanted[:1]
    assert placed(read(bulk(first, second))) == wanted
    plural = bulk(first, second)
    plural = {**plural, "tasks": plural.pop("task"), "annotations": plural.pop("annotation")}
    assert placed(read(plural)) == wanted


def test_an_annotation_of_several_is_of_the_task_that_it_names() -> None:
    first, second = pair(1, "partly", task=501), pair(2, "supported", task=502)
    sent = bulk(first, second)
    sent["task"].reverse()
    wanted = [(UUID(int=1), "1:1", "partly"), (UUID(int=2), "2:1", "supported")]
    assert placed(read(sent)) == wanted
    sent["annotation"].append({**second[1], "id": 3})
    assert placed(read(sent)) == [*wanted, (UUID(int=2), "3:1", "supported")]


def test_an_annotation_whose_task_is_not_known_is_refused_and_keeps_no_other_out() -> None:
    sent = bulk(pair(1, "partly", task=501), pair(2, "supported", task=777), pair(3, "partly"))
    sent["task"].pop()
    reading = read(sent)
    assert [label.external_id for label in reading.labels] == ["1:1"]
    assert [fault.detail for fault in reading.faults] == 2 * ["task.data: missing"]


def test_an_annotation_of_which_one_label_is_refused_says_nothing() -> None:
    unnamed = {"completed_by": None, "id": 18}
    sent = event("ANNOTATION_UPDATED", chosen("label_0", "partly"), chosen("label_1", "supported"), **unnamed)
    reading = read(sent)
    assert (reading.labels, len(reading.faults)) == ((), 2)
    mixed = read(event("ANNOTATION_UPDATED", chosen("label_0", "perhaps"), chosen("label_1", "supported")))
    assert (mixed.labels, len(mixed.faults), mixed.withheld) == ((), 1, 1)
    exported = {
        **sent["task"],
        "annotations": [sent["annotation"], {**sent["annotation"], "completed_by": 3, "id": 19}],
    }
    assert {label.external_id for label in read(exported).labels} == {"19", "19:1", "19:4"}
