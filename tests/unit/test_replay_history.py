"""The history that a replayed message carries in its headers."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from schemas.dead_letter import DeadLetter, original_headers
from schemas.decoding import decode_payload
from schemas.reject_reason import RejectReason
from schemas.replay import Replay, without_history
from tests.fixtures.bad_inputs import EVENT_HEADERS, row

REPLAY = Replay(
    count=2,
    topic="interactions",
    partition=3,
    offset=1234,
    reason=RejectReason.TOO_LARGE,
    replayed_at=datetime(2026, 11, 30, 2, 15, tzinfo=UTC),
)
ORIGINAL = (("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""), ("gasp-replay-count", b"of the application"))


def test_a_history_is_read_as_it_was_written_and_taken_off_again() -> None:
    headers = REPLAY.to_headers(ORIGINAL)
    assert Replay.from_headers(headers) == REPLAY
    assert without_history(headers) == ORIGINAL
    assert dict(headers[:6]) == {
        "gasp-replay-count": b"2",
        "gasp-replay-topic": b"interactions",
        "gasp-replay-partition": b"3",
        "gasp-replay-offset": b"1234",
        "gasp-replay-reason": b"too_large",
        "gasp-replayed-at": b"2026-11-30T02:15:00Z",
    }


def test_the_time_at_which_the_message_lay_there_at_first_goes_with_it_if_it_is_known() -> None:
    dated = REPLAY.model_copy(update={"timestamp_ms": 1_764_500_000_000})
    headers = dated.to_headers(ORIGINAL)
    assert dict(headers)["gasp-replay-timestamp-ms"] == b"1764500000000"
    assert Replay.from_headers(headers) == dated
    assert without_history(headers) == ORIGINAL


def test_it_survives_the_next_death() -> None:
    letter = DeadLetter(
        reason=RejectReason.WRONG_SHAPE,
        topic="interactions",
        partition=0,
        offset=9,
        size_bytes=1,
        value_attached=True,
        rejected_at=datetime(2026, 11, 30, 3, tzinfo=UTC),
    )
    headers = letter.to_headers(REPLAY.to_headers(ORIGINAL))
    assert DeadLetter.from_headers(headers) == letter
    assert Replay.from_headers(original_headers(headers)) == REPLAY


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gasp-replay-count", b"0"),
        ("gasp-replay-count", b"9" * 30),
        ("gasp-replay-count", b"many"),
        ("gasp-replay-count", None),
        ("gasp-replay-partition", b"-1"),
        ("gasp-replay-reason", b"no such reason"),
        ("gasp-replayed-at", b"0001-01-01T00:00:00+14:00"),
        ("gasp-replayed-at", b"\xff"),
    ],
)
def test_what_only_looks_like_a_history_is_none(name: str, content: bytes | None) -> None:
    headers = {**dict(REPLAY.to_headers()), name: content}
    assert Replay.from_headers(tuple(headers.items())) is None
    assert Replay.from_headers(()) is None


@pytest.mark.parametrize("headers", [(), EVENT_HEADERS])
def test_it_does_not_disturb_decoding(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    value = json.dumps(row(None)).encode()
    received_at = datetime(2026, 11, 30, tzinfo=UTC)
    plain, replayed = (
        decode_payload(value, sent, max_bytes=10_000, default_app="a", received_at=received_at)
        for sent in (headers, REPLAY.to_headers(headers))
    )
    assert replayed == plain
