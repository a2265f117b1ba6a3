"""Values of binary encodings as JSON has them: times, decimals, bytes, numbers of four bytes."""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from pydantic import JsonValue

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400
# Digits of a decimal that are written out, before and behind the point.
_MAX_DECIMAL_BYTES = 64
_MAX_SCALE = 200
_DURATION_BYTES = 12
_UUID_BYTES = 16


def logical_value(node: dict[str, Any], value: JsonValue | bytes) -> JsonValue:
    """Return a value of a type that says what it stands for (Avro's ``logicalType``), as a person would write it.

    Times are ISO 8601, decimals and UUIDs text. What cannot be that stays what it is: a number, or ``text_of_bytes``.
    """
    read = _LOGICAL.get(str(node.get("logicalType")))
    try:
        found = None if read is None else read(node, value)
    except (ValueError, OverflowError, TypeError, ArithmeticError):
        found = None
    if found is not None:
        return found
    return text_of_bytes(value) if isinstance(value, bytes) else value


def text_of_bytes(value: bytes) -> str:
    """Return bytes as the text that they are in UTF-8, or in base64 if they are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()


def shortest_float(number: float) -> float:
    """Return a number that was read from four bytes as the one with the fewest digits that has the same four bytes."""
    for digits in range(6, 9):
        short = float(f"{number:.{digits}g}")
        try:
            if struct.pack("<f", short) == struct.pack("<f", number):
                return short
        except OverflowError:
            # Rounded up beyond the largest of four bytes.
            continue
    return number


def iso_time(seconds: int, nanoseconds: int) -> str:
    """Return a moment of seconds and nanoseconds since 1970. Raises OverflowError outside the calendar."""
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanoseconds:09d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def _moment(units_per_s: int) -> Callable[[dict[str, Any], Any], str]:
    def read(_: dict[str, Any], value: Any) -> str:  # noqa: ANN401 - whatever the value is
        seconds, rest = divmod(value, units_per_s)
        return iso_time(seconds, rest * (10**9 // units_per_s))

    return read


def _local(units_per_s: int) -> Callable[[dict[str, Any], Any], str]:
    """A moment on a clock whose zone is not told."""
    return lambda node, value: _moment(units_per_s)(node, value).removesuffix("Z")


def _time_of_day(units_per_s: int) -> Callable[[dict[str, Any], Any], str | None]:
    def read(_: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401 - as above
        seconds, rest = divmod(value, units_per_s)
        if not 0 <= seconds < _DAY_S:
            return None
        moment = time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * (10**6 // units_per_s))
        return moment.isoformat()

    return read


def _date(_: dict[str, Any], value: Any) -> str:  # noqa: ANN401 - as above
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _decimal(node: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401 - as above
    scale = node.get("scale", 0)
    if len(value) > _MAX_DECIMAL_BYTES or not isinstance(scale, int) or not 0 <= scale <= _MAX_SCALE:
        return None
    unscaled = Decimal(int.from_bytes(value, "big", signed=True))
    return format(unscaled.scaleb(-scale, Context(prec=400)), "f")


def _uuid(_: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401 - as above
    return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) and len(value) == _UUID_BYTES else None


def _duration(_: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401 - as above
    if len(value) != _DURATION_BYTES:
        return None
    months, days, milliseconds = struct.unpack("<III", value)
    return f"P{months}M{days}DT{milliseconds / 1000:g}S"


_LOGICAL: dict[str, Callable[[dict[str, Any], Any], JsonValue]] = {
    "date": _date,
    "time-millis": _time_of_day(1000),
    "time-micros": _time_of_day(10**6),
    "timestamp-millis": _moment(10**3),
    "timestamp-micros": _moment(10**6),
    "timestamp-nanos": _moment(10**9),
    "local-timestamp-millis": _local(10**3),
    "local-timestamp-micros": _local(10**6),
    "local-timestamp-nanos": _local(10**9),
    "decimal": _decimal,
    "big-decimal": lambda _, __: None,
    "uuid": _uuid,
    "duration": _duration,
}
