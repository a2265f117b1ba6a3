"""Where a stretch that cannot be decoded ends, by the headers of its batches."""

from __future__ import annotations

import struct

import pytest

from worker.broker.unreadable import _rest_of_batch

HIGH_WATERMARK = 100


def batch(base: int, last_delta: int, version: int = 2, content: bytes = bytes(40)) -> bytes:
    head = struct.pack(">ibIhi", 0, version, 0, 0, last_delta) + content
    return struct.pack(">qi", base, len(head)) + head


@pytest.mark.parametrize(
    ("fetched", "first", "stretch"),
    [
        (batch(10, 9), 10, (10, 20)),
        (batch(10, 9), 14, (14, 20)),
        (batch(10, 9) + batch(20, 4), 20, (20, 25)),
        # Between two batches, where compaction took one.
        (batch(10, 4) + batch(20, 4), 17, (20, 25)),
        # A header that says too much, and one that says too little.
        (batch(10, 2_000_000) + batch(20, 4), 12, (12, 20)),
        (batch(10, 2_000_000), 12, (12, HIGH_WATERMARK)),
        (batch(10, -7), 12, (12, 13)),
        (b"", 12, (12, 13)),
        (b"\xff" * 90, 12, (12, 13)),
        # The formats before 2 know no such number.
        (batch(12, 5, version=1) + batch(13, 5, version=1), 12, (12, 13)),
        # The last batch of an answer may be cut off.
        (batch(10, 9) + batch(20, 4)[:14], 12, (12, 20)),
    ],
)
def test_a_stretch_ends_with_its_batch(fetched: bytes, first: int, stretch: tuple[int, int]) -> None:
    assert _rest_of_batch(fetched, first, HIGH_WATERMARK) == stretch
