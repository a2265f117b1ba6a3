"""Several exchanges in one message: arrays, JSON lines, batches of events, compressed or not."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from datetime import UTC, datetime

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.decoding import Decoded, Reading, Rejected, Result, Skipped, decode_payload
from schemas.formats import AUTO, FORMATS
from schemas.headers import Headers
from schemas.label_reading import read_label_payload
from schemas.lines import MAX_ROWS
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from tests.bars import bar

NOW = datetime(2026, 11, 30, tzinfo=UTC)
MAX_BYTES = 300_000
EVENT: dict[str, JsonValue] = {"specversion": "1.0", "source": "/bot", "time": "2026-01-02T03:04:05Z"}


def row(number: int) -> dict[str, JsonValue]:
    return {"id": f"r{number}", "question": "How long?", "contexts": ["30 days."], "answer": f"{number} days."}


def read(value: bytes, headers: Headers = (), *, format_name: str = AUTO, has_key: bool = False) -> Reading:
    return decode_payload(
        value,
        headers,
        max_bytes=MAX_BYTES,
        default_app="d",
        received_at=NOW,
        has_key=has_key,
        format_name=format_name,
    )


def names(results: tuple[Result, ...]) -> list[str]:
    """Each result in short: an id, or a reason with its detail."""
    return [
        one.interaction.interaction_id
        if isinstance(one, Decoded)
        else f"{one.reason}: {one.detail}"
        if isinstance(one, Rejected)
        else str(one.reason)
        for one in results
    ]


def array(*rows: object) -> bytes:
    return json.dumps(rows).encode()


def lines(*rows: object) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in rows)


TWO = ["r1", "r2"]


@pytest.mark.parametrize(
    "value",
    [
        array(row(1), row(2)),
        json.dumps([row(1), row(2)], indent=2).encode(),
        json.dumps(array(row(1), row(2)).decode()).encode(),
        lines(row(1), row(2)),
        lines(row(1), row(2)) + b"\n",
        b"\xef\xbb\xbf\n\n" + lines(row(1), row(2)).replace(b"\n", b"\r\n\r\n  "),
        lines({"schema": None, "payload": row(1)}, {**EVENT, "id": "e", "data": row(2)}),
        array({**EVENT, "id": "e1", "data": row(1)}, {**EVENT, "id": "e2", "data": row(2)}),
        json.dumps({**EVENT, "id": "e", "data": [row(1), row(2)]}).encode(),
        json.dumps({"schema": {}, "payload": [row(1), row(2)]}).encode(),
        b"\x00\x00\x00\x00\x07" + array(row(1), row(2)),
        array({**EVENT, "id": "e1", "data": [row(1), row(2)]}),
    ],
)
def test_each_row_of_a_message_is_an_exchange(value: bytes) -> None:
    for compressed in (value, gzip.compress(value), zstandard.compress(value)):
        assert names(read(compressed).results) == TWO


def test_an_object_over_several_lines_is_one() -> None:
    assert names(read(json.dumps(row(1), indent=1).encode()).results) == ["r1"]
    broken = json.dumps([row(1), row(2)], indent=1).encode()[:-1]
    assert names(read(broken).results)[0].startswith("invalid_json")


def test_a_bad_row_takes_no_other_along() -> None:
    rows = (row(1), 5, {**row(3), "answer": 7}, None, [row(1)], {"before": row(1), "after": None, "op": "d"}, row(2))
    assert names(read(array(*rows), has_key=True).results) == [
        "r1",
        "not_an_object: row 2: the value is a number",
        "wrong_shape: row 3: answer: must be a string",
        "null_value: row 4: the value is null",
        "not_an_object: row 5: the value is an array",
        "cdc_delete",
        "r2",
    ]


def test_a_line_that_is_no_json_takes_no_other_along() -> None:
    value = lines(row(1), row(2)).replace(b'"30 days."', b"30 days.", 1)
    first, second = names(read(value).results)
    assert first.startswith("invalid_json: row 1: not JSON at character")
    assert second == "r2"


def test_the_rows_of_an_event_are_told_apart() -> None:
    bare = [{name: one for name, one in row(number).items() if name != "id"} for number in (1, 2)]
    event = {**EVENT, "id": "e7", "data": bare}
    assert names(read(json.dumps(event).encode()).results) == ["/bot#e7#1", "/bot#e7#2"]
    assert names(read(array(*bare), [("ce_id", b"e7"), ("ce_source", b"/bot")]).results) == ["/bot#e7#1", "/bot#e7#2"]
    batch = [{**EVENT, "id": f"e{number}", "data": one} for number, one in enumerate(bare)]
    assert names(read(array(*batch)).results) == ["/bot#e0", "/bot#e1"]


def test_a_message_without_rows_has_an_outcome() -> None:
    assert names(read(b"[]").results) == ["empty_value: an array or a file without rows"]
    assert names(read(b"[]", [("content-type", b"application/cloudevents-batch+json")]).results)
    assert names(read(array({**EVENT, "id": "e", "data": []}, row(2))).results) == [
        "empty_value: row 1: an array or a file without rows",
        "r2",
    ]


@pytest.mark.parametrize("write", [array, lines])
def test_a_message_holds_so_many_rows_and_no_more(write: object) -> None:
    assert callable(write)
    most = [row(number) for number in range(MAX_ROWS)]
    assert len(read(write(*most)).results) == MAX_ROWS
    (refused,) = read(write(*most, row(0))).results
    assert isinstance(refused, Rejected)
    assert refused.reason is RejectReason.TOO_MANY_ROWS
    half = {**EVENT, "id": "e", "data": most[: MAX_ROWS // 2 + 1]}
    assert names(read(array(half, half)).results)[0].startswith("too_many_rows")


def test_attributes_of_an_event_are_not_multiplied_without_end() -> None:
    event = {**EVENT, "id": "e", "note": "x" * 2_000, "data": [row(number) for number in range(200)]}
    (refused,) = read(json.dumps(event).encode()).results
    assert isinstance(refused, Rejected)
    assert refused.reason is RejectReason.TOO_LARGE


def test_only_the_row_in_which_something_was_repaired_says_so() -> None:
    results = read(array(row(1), {**row(2), "answer": "a\x00b"}, row(3))).results
    assert [one.repairs for one in results if isinstance(one, Decoded)] == [(), ("nul",), ()]


def test_ids_that_differ_in_what_cannot_be_stored_stay_apart_in_one_message() -> None:
    found = names(
        read(array({**row(1), "id": "a\x00"}, {**row(1), "id": "a\ud800"}, {**row(1), "id": "a\x00"})).results
    )
    assert len(set(found)) == 2
    assert found[0] == found[2]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_what_is_decompressed_is_bounded(compress: object) -> None:
    assert callable(compress)
    at_limit = json.dumps(row(1)).encode().ljust(MAX_BYTES)
    assert names(read(compress(at_limit)).results) == ["r1"]
    for size in (MAX_BYTES + 1, 200_000_000):
        value = compress(at_limit.ljust(size))
        (refused,) = read(value).results
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.TOO_LARGE
        assert str(len(value)) in refused.detail
        assert str(MAX_BYTES) in refused.detail


def test_streams_behind_one_another_are_one_value() -> None:
    first, second = json.dumps(row(1)).encode()[:20], json.dumps(row(1)).encode()[20:]
    assert names(read(gzip.compress(first) + gzip.compress(second) + bytes(12)).results) == ["r1"]
    assert names(read(zstandard.compress(first) + zstandard.compress(second)).results) == ["r1"]
    assert names(read(gzip.compress(b"") * 5_000).results)[0].startswith("invalid_encoding")
    assert names(read(zstandard.compress(b"") * 5_000).results)[0].startswith("invalid_encoding")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_broken_stream_has_a_name(compress: object) -> None:
    assert callable(compress)
    value = compress(json.dumps(row(1)).encode())
    for broken in (value[:-1], value[:8], value + b"junk", value[:20] + bytes(4) + value[24:]):
        (refused,) = read(broken).results
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.INVALID_ENCODING


def test_the_header_is_asked_only_where_the_bytes_do_not_tell() -> None:
    plain = json.dumps(row(1)).encode()

    def named(encoding: bytes, value: bytes) -> str:
        return names(read(value, [("content-encoding", encoding)]).results)[0]

    assert [named(one, plain) for one in (b"gzip", b"br", b"secret")] == ["r1", "r1", "r1"]
    assert named(b"deflate", zlib.compress(plain)) == "r1"
    assert named(b"br", b"\x8b\x02\x80") == "unsupported_encoding: content-encoding: br is not read"
    assert "secret" not in named(b"secret", b"\x8b\x02\x80")


def test_a_format_that_is_set_reads_alone() -> None:
    assert AUTO in FORMATS
    native = {"interaction_id": "n1", "question": "", "passages": ["p"], "answer": "Yes."}
    value = json.dumps(native).encode()
    for name in (AUTO, "native", "flat"):
        (found,) = read(value, format_name=name).results
        assert isinstance(found, Decoded)
        assert found.adapter == ("native" if name == AUTO else name)
    (refused,) = read(json.dumps(row(1)).encode(), format_name="native").results
    rule = "native: not of this format, which is the one that is set"
    assert refused == Rejected(RejectReason.WRONG_SHAPE, f"{rule}; it looks like flat")
    (refused,) = read(b'{"answer": "Yes."}', format_name="native").results
    assert isinstance(refused, Rejected)
    assert refused.detail.startswith(f"{rule}; passages: missing")
    (refused,) = read(json.dumps({**native, "answer": 5}).encode(), format_name="native").results
    assert refused == Rejected(RejectReason.WRONG_SHAPE, "native: answer: must be a string")


def test_labels_may_come_several_in_a_message() -> None:
    label: dict[str, object] = {
        "task_id": "0b0f7a6e-7a0c-4d6c-8a56-0f3d6a2f7c11",
        "sentence_index": 0,
        "label": "supported",
        "reviewer": "r",
        "tool": "t",
    }
    for value in (array(label, {**label, "label": "maybe"}, 5), lines(label, {**label, "label": "maybe"}, {})):
        reading = read_label_payload(value, (), max_bytes=MAX_BYTES, received_at=NOW)
        assert len(reading.labels) == 1
        assert [fault.detail[:6] for fault in reading.faults] == ["row 2:", "row 3:"]
    gone = {"before": label, "after": None, "op": "d"}
    reading = read_label_payload(array(gone, gone), (), max_bytes=MAX_BYTES, received_at=NOW)
    assert reading.skip is SkipReason.DELETION


parts = st.sampled_from(
    [b"", b"\n", b"[", b"]", b"{}", b",", b'"', b"null", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x00\x00\x00\x00\x07"]
)


@given(st.lists(parts | st.binary(max_size=12), max_size=12).map(b"".join), st.booleans(), st.integers(0, 60))
@settings(max_examples=bar(300, 100), deadline=None)
def test_whatever_the_bytes_each_message_has_an_outcome(value: bytes, compress: bool, cut: int) -> None:  # noqa: FBT001
    found = read(gzip.compress(value)[cut:] if compress else value)
    assert found.results or found.pieces


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=bar(300, 100), deadline=None)
def test_a_compressed_value_with_another_byte_has_an_outcome(value: bytes, place: int, byte: int) -> None:
    for compressed in (gzip.compress(value), zstandard.compress(value)):
        changed = bytearray(compressed)
        changed[place % len(changed)] = byte
        assert read(bytes(changed)).results
    event = {**EVENT, "data_base64": base64.b64encode(value).decode()}
    assert all(not isinstance(one, Skipped) for one in read(json.dumps(event).encode()).results)
