"""Compressed batches, decompressed piece by piece: a record that is too large is passed over and never held in memory.

kafka-python decompresses a batch as a whole, so that a message of a few kilobytes can take gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import lz4.frame
import snappy
import zstandard
from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.util import decode_varint, encode_varint

# What is decompressed at a time.
PIECE_BYTES = 256 * 1024
# What can only be decompressed as a whole: blocks of Snappy, and batches of the formats before 2.
MOST_AT_ONCE_BYTES = 64 * 1024 * 1024
# Where a batch ends with a larger value, its headers, which lie behind that, are not worth the way.
MOST_PASSED_BYTES = 256 * 1024 * 1024
# More than the numbers before a key, or between two parts of a record, can have.
_NUMBERS_BYTES = 64

_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEAD_BYTES = 16
_GZIP = 31

Read = Callable[[], bytes]
"""Gives the next piece of what was compressed; empty at the end. Raises CorruptRecordError."""


class LeftOut(bytes):
    """Stands for a value that was not read; ``size`` is the number of its bytes, at least 1."""

    size: int

    def __new__(cls, size: int) -> LeftOut:
        """Empty but for its size."""
        made = super().__new__(cls)
        made.size = size
        return made


def bound(consumer: KafkaConsumer, max_record_bytes: int) -> None:
    """Have the consumer leave out the values of compressed records that are larger, and read all others as before."""

    class Bounded(Fetcher.PartitionRecords):  # type: ignore[misc]  # kafka-python ships no types
        def _unpack_records(self, place: Any, records: Any, *deserializers: Any) -> Any:  # noqa: ANN401 - as above
            return super()._unpack_records(place, _Batches(records, max_record_bytes), *deserializers)

    consumer._fetcher.PartitionRecords = Bounded  # noqa: SLF001 - nothing public leads there


class _Batches:
    """What a fetch brought, batch by batch, as kafka-python asks for it."""

    def __init__(self, records: Any, max_record_bytes: int) -> None:  # noqa: ANN401 - kafka-python's MemoryRecords
        self._records = records
        self._max_record_bytes = max_record_bytes

    def next_batch(self) -> Any:  # noqa: ANN401 - a batch of kafka-python's
        batch = self._records.next_batch()
        if batch is None or not batch.compression_type:
            return batch
        if isinstance(batch, DefaultRecordBatch):
            return _Batch(batch._buffer, self._max_record_bytes)  # noqa: SLF001 - kafka-python's own has no other way
        return _LegacyBatch(batch._buffer, batch.magic)  # noqa: SLF001 - as above


class _Batch(DefaultRecordBatch):  # type: ignore[misc]  # kafka-python ships no types
    """A compressed batch. What is decompressed of it and not read yet lies in ``_buffer`` from ``_pos`` on."""

    def __init__(self, buffer: bytes, max_record_bytes: int) -> None:
        super().__init__(buffer)
        self._buffer: bytearray
        self._pos: int
        self._decompressed: bool
        self._max_record_bytes = max_record_bytes
        self._read: Read = bytes

    def _maybe_uncompress(self) -> None:
        if not self._decompressed:
            self._assert_has_codec(self.compression_type)
            self._read = _READERS[self.compression_type](bytes(self._buffer[self._pos :]))
            self._buffer, self._pos = bytearray(), 0
        self._decompressed = True

    def __next__(self) -> Any:  # noqa: ANN401 - a record of kafka-python's
        # At the end one byte more shows that there is something left.
        self._fill(_NUMBERS_BYTES if self._next_record_index < self._num_records else 1)
        return super().__next__()

    next = __next__

    def _read_msg(self) -> Any:  # noqa: ANN401 - as above
        length, start = decode_varint(self._buffer, self._pos)
        if length <= self._max_record_bytes:
            self._fill(start - self._pos + max(length, 0))
            return super()._read_msg()
        left_out = self._leave_out(length, start)
        record = super()._read_msg()
        value = LeftOut(left_out)
        return DefaultRecord(
            record.size_in_bytes,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            value,
            record.headers,
        )

    def _leave_out(self, length: int, start: int) -> int:
        """Put the record without its value, and without a key or headers that are too large, in its place.

        Returns the bytes of the value.
        """
        self._pos = start
        self._fill(_NUMBERS_BYTES)
        at = self._pos
        for _ in range(3):  # attributes, time, offset
            _, at = decode_varint(self._buffer, at)
        numbers = bytes(self._buffer[self._pos : at])
        left = length - len(numbers)
        self._pos = at
        key, left = self._part(left)
        value_bytes, left = self._size(left)
        is_last = self._next_record_index == self._num_records - 1
        if is_last and value_bytes > MOST_PASSED_BYTES:
            self._read, headers = bytes, b"\0"
            self._buffer, self._pos = bytearray(), 0
        else:
            self._pass(max(value_bytes, 0))
            left -= max(value_bytes, 0)
            headers = self._take(left) if 0 < left <= self._max_record_bytes else self._without(left)
        body = numbers + key + _varint(-1) + headers
        self._buffer = bytearray(_varint(len(body)) + body) + self._buffer[self._pos :]
        self._pos = 0
        return max(value_bytes, 1)

    def _part(self, left: int) -> tuple[bytes, int]:
        """The key with its size, as none if it is too large, and what is left of the record behind it."""
        size, left = self._size(left)
        if size <= self._max_record_bytes:
            return _varint(size) + self._take(max(size, 0)), left - max(size, 0)
        self._pass(size)
        return _varint(-1), left - size

    def _size(self, left: int) -> tuple[int, int]:
        """The number that is next, and what is left of the record behind it."""
        self._fill(_NUMBERS_BYTES)
        size, at = decode_varint(self._buffer, self._pos)
        left -= at - self._pos
        self._pos = at
        if size > left:
            raise CorruptRecordError("a part of a record is larger than the record")
        return size, left

    def _take(self, size: int) -> bytes:
        self._fill(size)
        taken = bytes(self._buffer[self._pos : self._pos + size])
        self._pos += size
        return taken

    def _without(self, size: int) -> bytes:
        """Pass over headers that are too large; as if there were none."""
        self._pass(size)
        return b"\0"

    def _pass(self, size: int) -> None:
        """Go on behind so many bytes, piece by piece."""
        while size > len(self._buffer) - self._pos:
            size -= len(self._buffer) - self._pos
            self._pos = 0
            self._buffer = bytearray(self._read())
            if not self._buffer:
                raise CorruptRecordError("a record is cut off")
        self._pos += size

    def _fill(self, size: int) -> None:
        """Decompress until so many bytes lie ahead, or all that there are."""
        if len(self._buffer) - self._pos >= size:
            return
        del self._buffer[: self._pos]
        self._pos = 0
        while len(self._buffer) < size and (piece := self._read()):
            self._buffer += piece


class _LegacyBatch(LegacyRecordBatch):  # type: ignore[misc]  # kafka-python ships no types
    """A batch of the formats before 2, which holds a message with all the others as its value."""

    def _decompress(self, key_offset: int) -> bytes:
        data = self._read_key_value(key_offset)[1]
        if data is None or self.magic == 0:
            # Format 0 frames LZ4 in a way of its own; brokers convert it since 2015.
            return bytes(super()._decompress(key_offset))
        self._assert_has_codec(self.compression_type)
        read, whole = _READERS[self.compression_type](data), bytearray()
        while piece := read():
            whole += piece
            if len(whole) > MOST_AT_ONCE_BYTES:
                raise CorruptRecordError("a batch is larger than what is decompressed at once")
        return bytes(whole)


def _varint(value: int) -> bytes:
    written = bytearray()
    encode_varint(value, written.append)
    return bytes(written)


def _gzip(data: bytes) -> Read:
    stream, ahead = zlib.decompressobj(_GZIP), data

    def read() -> bytes:
        nonlocal stream, ahead
        while ahead:
            try:
                piece = stream.decompress(ahead, PIECE_BYTES)
            except zlib.error as error:
                raise CorruptRecordError("not gzip") from error
            ahead = stream.unconsumed_tail
            if stream.eof:
                # Another member may follow.
                stream, ahead = zlib.decompressobj(_GZIP), stream.unused_data
            if piece:
                return piece
        return b""

    return read


def _lz4(data: bytes) -> Read:
    stream, ahead = lz4.frame.LZ4FrameDecompressor(), data

    def read() -> bytes:
        nonlocal ahead
        if stream.eof:
            return b""
        try:
            piece: bytes = stream.decompress(ahead, PIECE_BYTES)
        except (RuntimeError, EOFError) as error:
            raise CorruptRecordError("not LZ4") from error
        ahead = b""
        return piece

    return read


def _zstd(data: bytes) -> Read:
    stream = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)

    def read() -> bytes:
        try:
            return bytes(stream.read(PIECE_BYTES))
        except zstandard.ZstdError as error:
            raise CorruptRecordError("not Zstandard") from error

    return read


def _snappy(data: bytes) -> Read:
    """Snappy as such, or in the frame of blocks that Java's clients write."""
    framed = data.startswith(_XERIAL_MAGIC)
    position = _XERIAL_HEAD_BYTES if framed else 0

    def read() -> bytes:
        nonlocal position
        start = position
        if start >= len(data):
            return b""
        if not framed:
            position = len(data)
            return _snappy_block(data)
        position = start + 4 + int.from_bytes(data[start : start + 4], "big")
        return _snappy_block(data[start + 4 : position])

    return read


def _snappy_block(data: bytes) -> bytes:
    """A block says first, seven bits a byte, how long it is."""
    length = 0
    for place, byte in enumerate(data[:5]):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if length > MOST_AT_ONCE_BYTES:
        raise CorruptRecordError("a block is larger than what is decompressed at once")
    try:
        return bytes(snappy.uncompress(data))
    except snappy.UncompressError as error:
        raise CorruptRecordError("not Snappy") from error


_READERS: dict[int, Callable[[bytes], Read]] = {
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
