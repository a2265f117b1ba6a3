"""Compressed batches as kafka-python's own builder makes them, read piece by piece."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from worker.broker.bounded import MOST_PASSED_BYTES, bound
from worker.broker.fetched import record_of
from worker.rules.records import Record

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PLACE = TopicPartition("t", 0)
MIB = 1024 * 1024
LIMIT = MIB
SEED = 3
Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


class Consumer:
    """What of a consumer is bound."""

    def __init__(self) -> None:
        self._fetcher: Any = type("Fetched", (), {"PartitionRecords": Fetcher.PartitionRecords})()

    def read(self, fetched: bytes) -> Iterator[Record]:
        """Its records of what a fetch brought."""
        records = self._fetcher.PartitionRecords(0, PLACE, MemoryRecords(fetched))
        while taken := records.take(1):
            yield from map(record_of, taken)


def batch(codec: int, rows: list[Row]) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 40)
    for offset, (key, value, headers) in enumerate(rows):
        assert builder.append(offset, 1_000 + offset, key, value, headers) is not None
    return bytes(builder.build())


def plain(record: Record) -> tuple[object, ...]:
    return record.offset, record.timestamp_ms, record.key, record.value, record.headers, record.left_out_bytes


def bounded(limit: int = LIMIT) -> Consumer:
    consumer = Consumer()
    bound(consumer, limit)
    return consumer


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_within_the_limit_are_read_as_kafka_python_reads_them(codec: int) -> None:
    draw = random.Random(SEED)
    rows: list[Row] = [
        (
            draw.choice([None, b"", draw.randbytes(draw.randrange(300))]),
            draw.choice([None, b"", draw.randbytes(draw.randrange(5_000)), bytes(draw.randrange(900_000))]),
            [("h" * draw.randrange(40), draw.choice([None, b"", b"v" * draw.randrange(200)]))] * draw.randrange(3),
        )
        for _ in range(60)
    ]
    fetched = batch(codec, rows) + batch(codec, rows[:1])
    found = [plain(record) for record in bounded().read(fetched)]
    assert found == [plain(record) for record in Consumer().read(fetched)]
    assert len(found) == 61


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=[*CODECS][1:])
def test_a_record_that_is_too_large_is_left_out_and_its_neighbours_are_whole(codec: int) -> None:
    bomb: Row = (b"key", bytes(32 * MIB), [("name", b"value")])
    fetched = batch(codec, [(b"a", b"first", []), bomb, bomb, (b"b", b"last", [("h", None)])])
    tracemalloc.start()
    try:
        found = [plain(record) for record in bounded().read(fetched)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == [
        (0, 1_000, b"a", b"first", (), 0),
        (1, 1_001, b"key", None, (("name", b"value"),), 32 * MIB),
        (2, 1_002, b"key", None, (("name", b"value"),), 32 * MIB),
        (3, 1_003, b"b", b"last", (("h", None),), 0),
    ]
    # A Snappy batch is compressed least: the fetch itself is 8 MiB.
    assert peak < 8 * MIB + 4 * len(fetched)


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=[*CODECS][1:])
@pytest.mark.parametrize("part", ["key", "headers"])
def test_a_key_or_headers_that_are_too_large_are_left_out_with_the_value(codec: int, part: str) -> None:
    large = bytes(3 * MIB)
    row: Row = (large, b"value", []) if part == "key" else (b"key", b"value", [("name", large)])
    found = [plain(record) for record in bounded().read(batch(codec, [row, (None, b"last", [])]))]
    assert found == [(0, 1_000, None if part == "key" else b"key", None, (), 5), (1, 1_001, None, b"last", (), 0)]


def test_the_way_to_the_end_of_a_batch_is_not_gone_for_the_headers_of_its_last_record() -> None:
    fetched = batch(4, [(None, b"first", []), (b"key", bytes(MOST_PASSED_BYTES + 1), [("name", b"value")])])
    found = [plain(record) for record in bounded().read(fetched)]
    assert found[1] == (1, 1_001, b"key", None, (), MOST_PASSED_BYTES + 1)


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=[*CODECS][1:])
def test_a_batch_that_is_cut_off_or_is_none_is_an_error_of_kafka_pythons(codec: int) -> None:
    whole = batch(codec, [(None, random.Random(SEED).randbytes(100_000), [])])
    for body in (whole[61:-30_000], b"nonsense" * 100):
        head = bytearray(whole[:61])
        struct.pack_into(">i", head, 8, 61 + len(body) - 12)
        broken = bytes(head) + body
        consumer = bounded()
        records = consumer._fetcher.PartitionRecords(0, PLACE, MemoryRecords(broken), check_crcs=False)
        with pytest.raises(CorruptRecordError):
            records.take(1)


def test_a_raw_snappy_batch_does_not_get_the_memory_that_it_asks_for() -> None:
    head = bytearray(batch(2, [(None, bytes(1_000), [])])[:61])
    body = b"\xff\xff\xff\xff\x0f" + b"rest"
    struct.pack_into(">i", head, 8, 61 + len(body) - 12)
    records = bounded()._fetcher.PartitionRecords(0, PLACE, MemoryRecords(bytes(head) + body), check_crcs=False)
    with pytest.raises(CorruptRecordError, match="larger than what is decompressed at once"):
        records.take(1)


@pytest.mark.parametrize(("magic", "codec"), [(0, 1), (1, 1), (1, 2), (1, 3)])
def test_the_formats_before_2_are_read_as_before_and_bounded_as_a_whole(magic: int, codec: int) -> None:
    def fetched(size: int) -> bytes:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 40)
        for offset in range(3):
            builder.append(offset, 1_000, b"key", bytes(size))
        return bytes(builder.build())

    small = fetched(1_000)
    assert [plain(one) for one in bounded().read(small)] == [plain(one) for one in Consumer().read(small)]
    if magic:
        with pytest.raises(CorruptRecordError, match="at once"):
            list(bounded().read(fetched(30 * MIB)))
