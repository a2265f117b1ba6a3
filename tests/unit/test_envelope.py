from __future__ import annotations

import base64

import pytest
from pydantic import JsonValue

from schemas.envelope import MAX_WRAPPERS, Opened, open_all
from schemas.errors import UnusablePayload
from schemas.headers import Headers
from schemas.reject_reason import RejectReason
from tests.fixtures.bad_inputs import encode

BODY: dict[str, JsonValue] = {"answer": "Yes."}
EVENT: dict[str, JsonValue] = {"specversion": "1.0", "id": "e1", "source": "/bot", "time": "2025-06-01T12:30:00Z"}


def open_envelope(value: bytes, headers: Headers) -> Opened:
    (opened,) = open_all(value, headers, max_bytes=100_000)
    if isinstance(opened, UnusablePayload):
        raise opened
    return opened


def body_of(value: object, headers: Headers = ()) -> object:
    return open_envelope(encode(value), headers).body


def reason_of(value: bytes) -> RejectReason:
    with pytest.raises(UnusablePayload) as raised:
        open_envelope(value, ())
    return raised.value.reason


def connect(payload: object, times: int = 1) -> object:
    return {"schema": None, "payload": connect(payload, times - 1)} if times else payload


@pytest.mark.parametrize("frame", [b"", b"\x00\x00\x00\x00\x07", b"\x01" + bytes(16), b"\x03\x00" + bytes(16)])
def test_a_registry_frame_is_taken_off(frame: bytes) -> None:
    assert open_envelope(frame + encode(BODY), ()).body == BODY


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x00\x00\x00\x00\x07\x22not json, but Avro text", RejectReason.UNSUPPORTED_ENCODING),
        (b"\x00\x00\x00\x00\x07\x00\x0a\x03abc", RejectReason.UNSUPPORTED_ENCODING),
        (b"\x02" + encode(BODY), RejectReason.UNSUPPORTED_ENCODING),
        (b"\x00\x00", RejectReason.UNSUPPORTED_ENCODING),
        (b"\x28\xb5\x2f\xfd\x00", RejectReason.INVALID_ENCODING),
        (b"\x00\x00\x00\x00\x07{broken", RejectReason.INVALID_JSON),
        (b"\x00\x00\x00\x00\x07 ", RejectReason.EMPTY_VALUE),
        (b'\x00\x00\x00\x00\x07{"a": NaN}', RejectReason.NON_FINITE_NUMBER),
    ],
)
def test_what_is_no_json_behind_a_frame_is_told_from_broken_json(value: bytes, reason: RejectReason) -> None:
    assert reason_of(value) is reason


def test_an_event_in_structured_mode_holds_its_data() -> None:
    opened = open_envelope(encode({**EVENT, "data": BODY}), ())
    assert opened.body == BODY
    assert opened.event == EVENT


def test_the_data_of_an_event_may_be_base64_or_text() -> None:
    assert body_of({**EVENT, "data_base64": base64.b64encode(encode(BODY)).decode()}) == BODY
    assert body_of({**EVENT, "data": encode(BODY).decode()}) == BODY


@pytest.mark.parametrize("data", ["***", 5, None, ["e30="], "e30"])
def test_data_that_is_no_base64_is_of_the_wrong_shape(data: JsonValue) -> None:
    assert reason_of(encode({**EVENT, "data_base64": data})) is RejectReason.WRONG_SHAPE


def test_an_event_in_binary_mode_has_its_attributes_in_headers() -> None:
    headers = [
        ("ce_id", b"e1"),
        ("ce_source", b"/b\xff\x00"),
        ("ce_time", None),
        ("content-type", b"x"),
        ("ce_id", b"e2"),
    ]
    opened = open_envelope(encode(BODY), headers)
    assert opened.body == BODY
    assert opened.event == {"id": "e1", "source": "/b\ufffd\ufffd"}


def test_attributes_in_the_value_win_over_those_in_headers() -> None:
    opened = open_envelope(encode({**EVENT, "data": BODY}), [("ce_id", b"outer"), ("ce_subject", b"s")])
    assert opened.event == {**EVENT, "subject": "s"}


def test_the_payload_of_a_connect_message_is_taken_out() -> None:
    assert body_of(connect(BODY)) == BODY


def test_a_row_that_merely_has_a_field_named_payload_is_no_wrapper() -> None:
    row = {"schema": "x", "payload": {}, "answer": "Yes."}
    assert body_of(row) == row


def test_json_in_a_json_string_is_opened_once() -> None:
    once = encode(BODY).decode()
    assert body_of(once) == BODY
    assert body_of("\ufeff " + once) == BODY
    assert reason_of(encode(encode(once).decode())) is RejectReason.NOT_AN_OBJECT
    assert reason_of(encode({**EVENT, "data": encode({**EVENT, "data": once}).decode()})) is RejectReason.NOT_AN_OBJECT


def test_broken_json_in_a_json_string_is_invalid() -> None:
    assert reason_of(encode("{broken")) is RejectReason.INVALID_JSON


def test_repairs_inside_wrappers_are_reported_once() -> None:
    inner = encode({"answer": "a\x00"}).decode()
    opened = open_envelope(encode({**EVENT, "subject": "\x00\ud83d", "data": inner}), ())
    assert opened.body == {"answer": "a\ufffd"}
    assert opened.repairs == ("nul", "lone_surrogate")


def test_wrappers_are_opened_to_a_fixed_depth() -> None:
    assert body_of(connect(BODY, MAX_WRAPPERS)) == BODY
    assert reason_of(encode(connect(BODY, MAX_WRAPPERS + 1))) is RejectReason.TOO_DEEP


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (None, RejectReason.NULL_VALUE),
        (" ", RejectReason.EMPTY_VALUE),
        ([5], RejectReason.NOT_AN_OBJECT),
        ([[BODY]], RejectReason.NOT_AN_OBJECT),
        ([], RejectReason.EMPTY_VALUE),
        (5, RejectReason.NOT_AN_OBJECT),
        ("text", RejectReason.NOT_AN_OBJECT),
    ],
)
def test_what_a_wrapper_holds_must_be_an_object(inner: JsonValue, reason: RejectReason) -> None:
    for value in (inner, connect(inner), {**EVENT, "data": inner}):
        assert reason_of(encode(value)) is reason
