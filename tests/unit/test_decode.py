from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.dead_letter import MAX_DETAIL_CHARS
from schemas.decoding import Decoded, Reading, Rejected, Skipped, decode_payload
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from tests.bars import bar
from tests.fixtures.bad_inputs import ANSWER, BAD_INPUTS, MAX_MESSAGE_BYTES, PASSAGE, BadInput, encode, row
from worker.ingest.decode import decode
from worker.rules.records import Record

RECEIVED_AT = datetime(2026, 11, 30, tzinfo=UTC)
SECRET = "the-patient-is-called-Brellow"


def read_all(
    value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = (), key: bytes | None = None
) -> Reading:
    record = Record("interactions", 0, 0, key, value, headers)
    return decode(record, max_message_bytes=MAX_MESSAGE_BYTES, default_app="default", received_at=RECEIVED_AT)


def read(
    value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = (), key: bytes | None = None
) -> Decoded | Rejected | Skipped:
    (result,) = read_all(value, headers, key).results
    return result


def decoded(value: bytes, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Decoded:
    result = read(value, headers)
    assert isinstance(result, Decoded), result
    return result


def rejected(value: bytes | None) -> Rejected:
    result = read(value)
    assert isinstance(result, Rejected), result
    return result


@pytest.mark.parametrize("case", [case for case in BAD_INPUTS if case.is_dead_letter], ids=lambda case: case.name)
def test_an_unusable_message_is_rejected_with_its_reason(case: BadInput) -> None:
    result = read(case.value, case.headers)
    assert isinstance(result, Rejected)
    assert result.reason == case.outcome
    assert 0 < len(result.detail) <= MAX_DETAIL_CHARS


@pytest.mark.parametrize("case", [case for case in BAD_INPUTS if case.is_deletion], ids=lambda case: case.name)
def test_what_was_deleted_where_it_came_from_is_skipped(case: BadInput) -> None:
    assert read(case.value, case.headers, key=b"key") == Skipped(SkipReason(case.outcome.removeprefix("skipped:")))


@pytest.mark.parametrize("value", [None, b"null", b'{"schema": null, "payload": null}'])
def test_nothing_without_a_key_is_no_tombstone(value: bytes | None) -> None:
    assert rejected(value).reason is RejectReason.NULL_VALUE


ODD = [case for case in BAD_INPUTS if not case.is_dead_letter and not case.is_deletion]


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.name)
def test_an_odd_message_is_decoded_and_says_what_was_repaired(case: BadInput) -> None:
    assert case.value is not None
    result = decoded(case.value, case.headers)
    assert result.repairs == case.repairs
    assert result.interaction.occurred_at == case.occurred_at
    if case.interaction_id is None:
        assert result.interaction.interaction_id.startswith("sha256-")
    else:
        assert result.interaction.interaction_id == case.interaction_id


def test_the_names_of_the_bad_inputs_are_unique() -> None:
    assert len({case.name for case in BAD_INPUTS}) == len(BAD_INPUTS)


def test_every_reason_that_decoding_can_give_has_a_bad_input() -> None:
    found_later = {RejectReason.SCORING_FAILED, RejectReason.STORE_REJECTED, RejectReason.UNREADABLE}
    of_registries = {RejectReason.UNKNOWN_SCHEMA}
    of_labels = {RejectReason.BAD_LABEL, RejectReason.UNKNOWN_SENTENCE}
    assert {case.outcome for case in BAD_INPUTS if case.is_dead_letter} == (
        set(RejectReason) - found_later - of_registries - of_labels
    )


def test_a_row_of_a_labelled_data_set_keeps_its_other_fields_as_metadata() -> None:
    logged = {
        "id": "qa-1",
        "dataset": "qa",
        "source_id": "14",
        "query": "Which number?",
        "passages": [PASSAGE, "Another."],
        "answer": ANSWER,
        "labels": [{"start": 0, "end": 3, "type": "conflict"}],
        "model": "generator-7b",
    }
    result = decoded(encode(logged))
    interaction = result.interaction
    assert result.adapter == "flat"
    assert (interaction.interaction_id, interaction.app, interaction.question) == ("qa-1", "default", "Which number?")
    assert [(passage.id, passage.text) for passage in interaction.passages] == [
        ("ctx-1", PASSAGE),
        ("ctx-2", "Another."),
    ]
    assert interaction.generator_model == "generator-7b"
    assert interaction.metadata == {"dataset": "qa", "source_id": "14", "labels": logged["labels"]}


def test_a_row_without_an_id_gets_the_same_id_each_time() -> None:
    first, second = decoded(encode(row(None))), decoded(encode(row(None, metadata={"attempt": 2})))
    other = decoded(encode(row(None, answer="Something else.")))
    assert first.interaction.interaction_id == second.interaction.interaction_id
    assert first.interaction.interaction_id != other.interaction.interaction_id


USERS = (
    {"metadata": {"user": "u1"}},
    {"metadata": {"user": "u2"}},
    {"user_id": 7},
    {"Benutzer": "u1"},
    {"customer": {"contact": {"mail": "u1@example.org"}}},
    {"session": "s-1"},
    {"occurred_at": "2025-06-01T12:30:00Z"},
    {"occurred_at": "2025-06-01T12:30:01Z"},
    {"ts": "2025-06-01T12:30:00Z"},
    {"generator_model": "m-1"},
    {"id": {"$oid": "65a1"}, "metadata": {}},
    {"occurred_at": "at noon"},
)


def test_the_same_words_at_another_time_or_of_another_person_are_another_exchange() -> None:
    ids = [decoded(encode({**row(None), **facts})) for facts in (*USERS, {})]
    assert len({one.interaction.interaction_id for one in ids}) == len(ids)
    assert len({one.interaction.content_hash for one in ids}) == 1
    assert all(one.repairs[-1] == "id_derived" for one in ids)
    # One that says nothing but its content goes by that alone.
    plain = ids[-1].interaction
    assert plain.interaction_id == f"sha256-{plain.content_hash[:32]}"


def test_marks_of_the_native_form_are_kept_with_the_answer() -> None:
    marks = [{"start": 2, "end": 6}]
    found = decoded(encode({"passages": [], "answer": "No [1].", "answer_marks": marks})).interaction
    assert (found.answer, found.marks) == ("No [1].", ((2, 6),))
    assert found.interaction_id == f"sha256-{found.content_hash[:32]}"
    assert (
        rejected(encode({"passages": [], "answer": "No.", "answer_marks": marks})).detail
        == "answer_marks: not_in_order"
    )
    assert (
        rejected(encode({"passages": [], "answer": "No.", "answer_marks": "[1]"})).detail == "answer_marks: tuple_type"
    )


@pytest.mark.parametrize("facts", USERS)
def test_the_same_message_again_has_the_same_id_however_often_it_is_sent(facts: dict[str, object]) -> None:
    first = decoded(encode({**row(None), **facts}))
    turned = dict(reversed({**row(None), **facts}.items()))
    again = decoded(encode({**turned, "retryCount": 3, "delivery": {"attempts": 2}}))
    assert first.interaction.interaction_id == again.interaction.interaction_id
    received_at = RECEIVED_AT.replace(year=2030)
    (later,) = decode_payload(
        encode(turned), (), max_bytes=10_000, default_app="default", received_at=received_at
    ).results
    assert isinstance(later, Decoded)
    assert later.interaction.interaction_id == first.interaction.interaction_id


def test_a_time_that_lies_ahead_makes_the_same_id_when_it_has_come() -> None:
    value = encode(row(None, occurred_at="2026-12-24T00:00:00Z"))
    early = decoded(value)
    (late,) = decode_payload(
        value, (), max_bytes=10_000, default_app="default", received_at=datetime(2027, 1, 1, tzinfo=UTC)
    ).results
    assert isinstance(late, Decoded)
    assert early.repairs == ("occurred_at_dropped", "id_derived")
    assert early.interaction.interaction_id == late.interaction.interaction_id


ODD_IDS = ("same-\x00", "same-\ud83d", "same-\ude00", "same-\ufffd", "same-\x00\x00", r"same-\u0000", "same-")


def _wrapped(kind: str, interaction_id: str) -> tuple[bytes, tuple[tuple[str, bytes | None], ...]]:
    """A message that names the exchange in the row, in the row inside a string, in base64, or in an event's id."""
    if kind == "event":
        event = {"specversion": "1.0", "id": interaction_id, "source": "/bot", "data": row(None)}
        return encode(event), ()
    value = encode(row(interaction_id))
    if kind == "string":
        return encode(value.decode()), ()
    if kind == "base64":
        return encode({"specversion": "1.0", "data_base64": base64.b64encode(value).decode()}), ()
    return value, ()


@pytest.mark.parametrize("kind", ["row", "string", "base64", "event"])
def test_ids_that_differ_in_repaired_characters_alone_stay_apart(kind: str) -> None:
    found = [decoded(*_wrapped(kind, one)) for one in ODD_IDS]
    ids = [one.interaction.interaction_id for one in found]
    assert len(set(ids)) == len(ODD_IDS)
    suffixed = ["id_suffixed" in one.repairs for one in found]
    assert suffixed == [True, True, True, False, True, False, False]
    assert all("same-\ufffd" in name for name, is_suffixed in zip(ids, suffixed, strict=True) if is_suffixed)
    # Whatever else the message says, and however often it comes.
    other = decoded(*_wrapped(kind, ODD_IDS[0]))
    assert other.interaction.interaction_id == ids[0]


def test_two_contents_of_an_id_that_was_repaired_are_of_one_exchange() -> None:
    first, second = (decoded(encode(row("a\x00", answer=answer))) for answer in ("Yes.", "No\ud83d."))
    assert first.interaction.interaction_id == second.interaction.interaction_id
    assert first.interaction.content_hash != second.interaction.content_hash


def test_apps_that_differ_in_repaired_characters_share_a_name_but_no_exchange() -> None:
    found = [decoded(encode(row("a", app=app))) for app in ("bot\x00", "bot\ud83d", "bot\ufffd")]
    assert {one.interaction.app for one in found} == {"bot\ufffd"}
    assert len({one.interaction.interaction_id for one in found}) == 3


def test_an_event_s_id_in_headers_that_is_no_text_stays_apart_from_another() -> None:
    events = [
        (("ce_specversion", b"1.0"), ("ce_id", b"e" + odd), ("ce_source", b"/bot"))
        for odd in (b"\xff", b"\xfe", b"\x00")
    ]
    ids = [decoded(encode(row(None)), headers).interaction.interaction_id for headers in events]
    assert len(set(ids)) == 3


def test_the_longest_id_stays_within_its_limit_and_apart() -> None:
    found = [decoded(encode(row("x" * 511 + odd))).interaction.interaction_id for odd in ("\x00", "\ud83d")]
    assert len(set(found)) == 2
    assert all(len(one) == 512 for one in found)
    events = [
        {"specversion": "1.0", "id": "x" * 505 + odd, "source": "/bot", "data": row(None)} for odd in ("\x00", "\ud83d")
    ]
    assert len({decoded(encode(event)).interaction.interaction_id for event in events}) == 2


def test_content_that_differs_in_repaired_characters_alone_names_two_exchanges() -> None:
    found = [decoded(encode(row(None, answer=f"Yes{odd}."))) for odd in ("\x00", "\ud83d", "\ufffd")]
    assert len({one.interaction.interaction_id for one in found}) == 3


def test_attributes_of_an_event_stand_in_only_for_what_the_row_leaves_out() -> None:
    event = {"specversion": "1.0", "id": "e1", "source": "/bot", "time": "2025-06-01T12:30:00Z", "subject": "tenant-7"}
    own = row("own-id", occurred_at="2025-01-01T00:00:00Z")
    result = decoded(encode({**event, "data": own}))
    assert result.interaction.interaction_id == "own-id"
    assert result.interaction.occurred_at == datetime(2025, 1, 1, tzinfo=UTC)
    assert result.interaction.metadata == {"cloudevent": event}


def test_a_time_that_is_dropped_stays_in_the_metadata() -> None:
    assert decoded(encode(row("a", occurred_at="yesterday"))).interaction.metadata == {"occurred_at": "yesterday"}


def test_replaced_characters_keep_their_offsets() -> None:
    answer = "a\x00b\ud83dc😀d\ude00\x00\\u0000"
    result = decoded(encode(row("a", answer=answer)))
    assert result.interaction.answer == "a\ufffdb\ufffdc😀d\ufffd\ufffd\\u0000"
    assert result.repairs == ("nul", "lone_surrogate")


@pytest.mark.parametrize(
    "value",
    [
        encode(row(SECRET * 100)),
        encode(row("a", answer={SECRET: SECRET})),
        encode(row("a", passages=[{SECRET: SECRET}])),
        encode(row("a", schema=f"gasp.interaction.{SECRET}")),
        encode({SECRET: 1}),
        SECRET.encode(),
        encode(SECRET),
    ],
)
def test_a_rejection_never_quotes_the_message(value: bytes) -> None:
    assert SECRET not in rejected(value).detail


def test_a_rejection_names_the_field_as_it_was_logged() -> None:
    row = {"response": "x", "contexts": ["a", {"content": 5}]}
    assert rejected(encode(row)).detail == "contexts.1.content: must be a string"


def test_an_interaction_written_out_is_read_back_the_same() -> None:
    logged = row("a", occurred_at="2025-06-01T12:30:00Z", generator_model="m", metadata={"a": [1, None, {"b": 2.5}]})
    first = decoded(encode(logged))
    again = decoded(first.interaction.model_dump_json(by_alias=True).encode())
    assert again == first
    assert again.adapter == "native"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
field_names = st.sampled_from(
    [
        *("schema", "payload", "specversion", "data", "data_base64", "source", "time"),
        *("interaction_id", "id", "app", "timestamp", "question", "passages", "context", "text", "score"),
        *("answer", "output", "model", "metadata"),
        *("before", "after", "op", "type", "database", "table", "__op", "__deleted", "isDdl"),
    ]
)
rows = st.recursive(
    st.dictionaries(field_names, json_values, max_size=8),
    lambda children: st.dictionaries(field_names, children | st.lists(children, max_size=3), max_size=4),
    max_leaves=4,
)
headers = st.lists(
    st.tuples(st.sampled_from(["ce_id", "ce_source", "ce_time", "content-type"]), st.none() | st.binary(max_size=12)),
    max_size=3,
).map(tuple)


def assert_storable(reading: Reading) -> None:
    """There is an outcome, and whatever was decoded can be stored: its JSON is finite, without NUL and UTF-8."""
    assert reading.results or reading.pieces
    for result in reading.results:
        assert_result_storable(result)


def assert_result_storable(result: Decoded | Rejected | Skipped) -> None:
    if isinstance(result, Rejected):
        assert result.reason in RejectReason
        return
    if isinstance(result, Skipped):
        assert result.reason in SkipReason
        return
    document = result.interaction.model_dump_json()
    assert "\\u0000" not in document.replace("\\\\", "")
    orjson.loads(document)


@given(st.binary() | st.text().map(str.encode) | st.binary().map(lambda tail: b"\x00\x00\x00\x00\x01{" + tail), headers)
@settings(deadline=None)
def test_no_bytes_make_decoding_raise(value: bytes, ce_headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert_storable(read_all(value, ce_headers))


@given(rows | json_values, headers)
@settings(max_examples=bar(300, 100), deadline=None)
def test_no_json_makes_decoding_raise(value: object, ce_headers: tuple[tuple[str, bytes | None], ...]) -> None:
    assert_storable(read_all(json.dumps(value).encode(), ce_headers))


answers = st.fixed_dictionaries({"answer": st.text()}, optional={"metadata": json_values, "passages": json_values})


@given(answers, st.dictionaries(st.text(max_size=6), json_values, max_size=3))
@settings(deadline=None)
def test_a_row_with_an_answer_keeps_it_character_for_character(row: Mapping[str, object], extra: object) -> None:
    assert isinstance(extra, dict)
    result = read(json.dumps({**extra, **row, "passages": []}, allow_nan=True).encode())
    if isinstance(result, Decoded):
        expected = "".join(
            "\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in str(row["answer"])
        )
        assert result.interaction.answer == expected


def test_what_a_model_thought_first_is_no_part_of_the_answer() -> None:
    interaction = decoded(encode(row("a", answer=f"<think>\nThirty, it says.\n</think>\n\n{ANSWER}"))).interaction
    assert (interaction.answer, interaction.metadata) == (ANSWER, {"thoughts": "Thirty, it says."})


def test_the_limit_is_on_the_value_in_bytes() -> None:
    value = encode(row("a"))

    def within(max_bytes: int) -> object:
        reading = decode_payload(value, (), max_bytes=max_bytes, default_app="d", received_at=RECEIVED_AT)
        return reading.results[0]

    assert isinstance(within(len(value)), Decoded)
    assert isinstance(within(len(value) - 1), Rejected)
