"""Avro, written again as JSON: values in the form of their writer's schema, and files with the schema in them.

The reader is our own, because lengths, depths and counts of a value are a stranger's: fastavro follows a recursive
schema as deep as the value says, until the process ends, and counts as many nulls as an array says that it has.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import orjson
from pydantic import JsonValue

from schemas.encodings.compression import inflated, unpacked_zstd
from schemas.encodings.logical import logical_value, shortest_float, text_of_bytes
from schemas.encodings.schema import FILE_MAGIC, Schema, SchemaKind, invalid_encoding, unusable_schema
from schemas.errors import UnusablePayload
from schemas.lines import MAX_ROWS, too_many_rows
from schemas.payload import MAX_DEPTH, parse_json
from schemas.reject_reason import RejectReason

# A value may be null, or a record of nulls, and take no byte: without a bound an array of them has no end.
MAX_VALUES = 1_000_000
_VALUES_FOR_NOTHING = 1_000
_VALUES_A_BYTE = 8
# The words of a schema, which a value repeats for few bytes: names of fields, symbols of enumerations.
_MAX_WORDS_CHARS = 32 * 1024 * 1024
_SYNC_BYTES = 16
# Longer schemas are parsed anew for each value: a file may bring any.
_MAX_KEPT_CHARS = 100_000
_MAX_LONG_BYTES = 10
_MAX_META = 100

Node: TypeAlias = Any
"""A part of a schema as fastavro writes it: the name of a type, an object, or the list of a union."""


def avro_as_json(value: bytes, schema: Schema) -> bytes:
    """Return one datum as JSON.

    Raises UnusablePayload: unknown_schema for a schema that is none, and as ``_Reader``.
    """
    root, named = _parsed(schema)
    return _Reader(value, named).datum(root)


def require_avro(schema: Schema) -> None:
    """Raises UnusablePayload (unknown_schema) for a schema that is none."""
    _parsed(schema)


def avro_file_as_json(value: bytes, *, max_bytes: int) -> tuple[bytes, ...]:
    """Return the records of an Avro file as JSON texts, at most MAX_ROWS; ``max_bytes`` bounds them decompressed.

    Raises UnusablePayload as above, and unsupported_encoding for a codec that is not read, too_many_rows, too_large.
    """
    head = _Reader(value, {})
    head.take(len(FILE_MAGIC))
    meta = head.head()
    sync = head.take(_SYNC_BYTES)
    schema = Schema(SchemaKind.AVRO, _utf8(meta.get("avro.schema", b"")))
    root, named = _parsed(schema)
    unpack = _codec(meta.get("avro.codec", b"null"))
    found: list[bytes] = []
    left = max_bytes
    while head.has_more:
        count, block = head.long(), head.take(head.long())
        if head.take(_SYNC_BYTES) != sync:
            raise invalid_encoding(SchemaKind.AVRO, "a block of the file does not end where it says")
        if not 0 <= count <= MAX_ROWS - len(found):
            raise too_many_rows()
        data = unpack(block, left)
        left -= len(data)
        found.extend(_Reader(data, named).data(root, count))
    return tuple(found)


def _parsed(schema: Schema) -> tuple[Node, dict[str, Node]]:
    """The schema with the full names of its types, and these types by name. Raises UnusablePayload (unknown_schema)."""
    return _kept(schema) if len(schema.text) <= _MAX_KEPT_CHARS else _parsed_anew(schema)


@lru_cache(maxsize=64)
def _kept(schema: Schema) -> tuple[Node, dict[str, Node]]:
    return _parsed_anew(schema)


def _parsed_anew(schema: Schema) -> tuple[Node, dict[str, Node]]:
    # Of an extra, as its package is.
    import fastavro
    from fastavro.schema import SchemaParseException, UnknownType

    named: dict[str, Node] = {}
    root: Node = None
    try:
        for one in (*_in_order(schema), schema):
            logged: Any = parse_json(one.text.encode()).value
            root = fastavro.parse_schema(logged, named_schemas=named)
    except (UnusablePayload, SchemaParseException, UnknownType, LookupError, TypeError, ValueError, AttributeError):
        raise unusable_schema(SchemaKind.AVRO, "it is no schema, or refers to one that is not there") from None
    return root, named


def _in_order(schema: Schema) -> Iterator[Schema]:
    for one in schema.references:
        yield from _in_order(one)
        yield one


def _codec(name: bytes) -> Callable[[bytes, int], bytes]:
    if name == b"null":
        return lambda block, _: block
    if name == b"deflate":
        return lambda block, left: inflated(block, max_bytes=left, raw=True)
    if name == b"zstandard":
        return lambda block, left: unpacked_zstd(block, max_bytes=left)
    if name == b"snappy":
        return _unsnapped
    raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, "avro: a file in a codec that is not read")


def _unsnapped(block: bytes, left: int) -> bytes:
    """Snappy, which says first how long it is; four bytes of a checksum end the block."""
    import snappy

    try:
        length, _ = _varint(block, 0)
        if length > left:
            raise UnusablePayload(RejectReason.TOO_LARGE, f"{len(block)} bytes of snappy say that they hold {length}")
        return bytes(snappy.uncompress(block[:-4]))
    except (snappy.UncompressError, IndexError):
        raise invalid_encoding(SchemaKind.AVRO, "a broken block of a file") from None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends. Raises IndexError for one without an end."""
    found = 0
    for place in range(_MAX_LONG_BYTES):
        byte = data[position + place]
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return found, position + place + 1
    raise IndexError


class _Reader:
    """Reads values one behind the other, within bounds on depth and number whatever they say of themselves.

    Raises UnusablePayload: invalid_encoding for what is not of the schema, too_deep, too_large for too many values,
    invalid_utf8, non_finite_number.
    """

    def __init__(self, data: bytes, named: dict[str, Node]) -> None:
        self._data = data
        self._named = named
        self._at = 0
        self._depth = 0
        self._values_left = min(MAX_VALUES, _VALUES_A_BYTE * len(data) + _VALUES_FOR_NOTHING)
        self._words_left = _MAX_WORDS_CHARS

    @property
    def has_more(self) -> bool:
        """Whether there are bytes left."""
        return self._at < len(self._data)

    def datum(self, root: Node) -> bytes:
        """The one value that the bytes are, as JSON."""
        (found,) = self.data(root, 1)
        return found

    def data(self, root: Node, count: int) -> Iterator[bytes]:
        """So many values, as JSON, that the bytes are to the last."""
        for _ in range(count):
            yield orjson.dumps(self._value(root))
        if self.has_more:
            raise invalid_encoding(SchemaKind.AVRO, f"{len(self._data) - self._at} bytes behind the end")

    def head(self) -> dict[str, bytes]:
        """A map to bytes, as a file begins with."""
        found: dict[str, bytes] = {}
        for _ in self._items():
            name = _utf8(self.take(self.long()))
            found[name] = self.take(self.long())
            if len(found) > _MAX_META:
                raise invalid_encoding(SchemaKind.AVRO, "a file with too much at its head")
        return found

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        start, end = self._at, self._at + size
        if size < 0 or end > len(self._data):
            raise invalid_encoding(SchemaKind.AVRO, f"a length beyond the end, at byte {start}")
        self._at = end
        return self._data[start:end]

    def long(self) -> int:
        """The next number."""
        try:
            found, self._at = _varint(self._data, self._at)
        except IndexError:
            raise invalid_encoding(SchemaKind.AVRO, f"a number without an end, at byte {self._at}") from None
        return (found >> 1) ^ -(found & 1)

    def _value(self, node: Node) -> JsonValue:
        self._values_left -= 1
        if self._values_left < 0:
            raise UnusablePayload(RejectReason.TOO_LARGE, "avro: more values than its bytes can be meant to hold")
        if isinstance(node, str):
            return _PRIMITIVES[node](self) if node in _PRIMITIVES else self._nested(self._named[node])
        if isinstance(node, list):
            return self._value(self._branch(node))
        kind = node["type"]
        if not isinstance(kind, str):
            return self._value(kind)
        if kind in _NESTED:
            return self._nested(node)
        if kind == "enum":
            return self._symbol(node["symbols"])
        if kind == "fixed":
            return logical_value(node, self.take(node["size"]))
        if kind in _PRIMITIVES:
            return logical_value(node, self._raw(kind))
        return self._value(kind)

    def _raw(self, kind: str) -> JsonValue | bytes:
        return self.take(self.long()) if kind == "bytes" else _PRIMITIVES[kind](self)

    def _nested(self, node: Node) -> JsonValue:
        kind = node["type"]
        if kind not in _NESTED:
            # A named type that holds no others: an enumeration, or so many bytes.
            self._values_left += 1
            return self._value(node)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnusablePayload(RejectReason.TOO_DEEP, f"avro: nested deeper than {MAX_DEPTH}")
        found = _NESTED[kind](self, node)
        self._depth -= 1
        return found

    def _record(self, node: Node) -> JsonValue:
        return {self._word(field["name"]): self._value(field["type"]) for field in node["fields"]}

    def _array(self, node: Node) -> JsonValue:
        return [self._value(node["items"]) for _ in self._items()]

    def _map(self, node: Node) -> JsonValue:
        return {_utf8(self.take(self.long())): self._value(node["values"]) for _ in self._items()}

    def _items(self) -> Iterator[None]:
        """Once for each item of an array or map, which come in blocks."""
        while count := self.long():
            if count < 0:
                # How many bytes the block has stands behind, for those that skip it.
                self.long()
                count = -count
            for _ in range(count):
                yield None

    def _branch(self, union: list[Node]) -> Node:
        return union[self._index(len(union))]

    def _symbol(self, symbols: list[str]) -> str:
        return self._word(symbols[self._index(len(symbols))])

    def _index(self, count: int) -> int:
        at, index = self._at, self.long()
        if not 0 <= index < count:
            raise invalid_encoding(SchemaKind.AVRO, f"a choice that the schema has not, at byte {at}")
        return index

    def _word(self, word: str) -> str:
        self._words_left -= len(word)
        if self._words_left < 0:
            raise UnusablePayload(RejectReason.TOO_LARGE, "avro: as JSON it would be too large")
        return word

    def _boolean(self) -> bool:
        at, byte = self._at, self.take(1)
        if byte not in (b"\x00", b"\x01"):
            raise invalid_encoding(SchemaKind.AVRO, f"neither true nor false, at byte {at}")
        return byte == b"\x01"

    def _float(self) -> float:
        return _finite(shortest_float(struct.unpack("<f", self.take(4))[0]))

    def _double(self) -> float:
        return _finite(struct.unpack("<d", self.take(8))[0])

    def _string(self) -> str:
        return _utf8(self.take(self.long()))

    def _bytes(self) -> str:
        return text_of_bytes(self.take(self.long()))


_PRIMITIVES: dict[str, Callable[[_Reader], JsonValue]] = {
    "null": lambda _: None,
    "boolean": _Reader._boolean,  # noqa: SLF001 - of the same file
    "int": _Reader.long,
    "long": _Reader.long,
    "float": _Reader._float,  # noqa: SLF001 - as above
    "double": _Reader._double,  # noqa: SLF001 - as above
    "bytes": _Reader._bytes,  # noqa: SLF001 - as above
    "string": _Reader._string,  # noqa: SLF001 - as above
}
_NESTED: dict[str, Callable[[_Reader, Node], JsonValue]] = {
    "record": _Reader._record,  # noqa: SLF001 - as above
    "error": _Reader._record,  # noqa: SLF001 - as above
    "array": _Reader._array,  # noqa: SLF001 - as above
    "map": _Reader._map,  # noqa: SLF001 - as above
}


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise UnusablePayload(RejectReason.NON_FINITE_NUMBER, "avro: a number that is not finite")
    return number


def _utf8(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise UnusablePayload(RejectReason.INVALID_UTF8, "avro: a string that is not UTF-8") from None
