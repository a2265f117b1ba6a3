"""When an exchange took place, from whatever a logger wrote."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

EARLIEST = datetime(2015, 1, 1, tzinfo=UTC)
MAX_AHEAD = timedelta(days=1)
"""How far a logger's clock may run ahead of the worker's."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_CHARS = 64
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_BASIC_DATE_CHARS = 8  # 20261129; as an epoch it would lie in 1970

# Upper bounds of an epoch's size and what one second is in its unit. Two units never share a date after 2015.
_UNITS_PER_S = ((10**11, 1), (10**14, 10**3), (10**17, 10**6), (10**20, 10**9))


def parse_timestamp(value: object, *, received_at: datetime) -> datetime | None:
    """Return the moment in UTC, or None for what is no time between EARLIEST and a day after ``received_at``.

    Reads epochs in s, ms, us or ns (integer, float or digits; told apart by size), ISO 8601 (without a zone it is
    UTC) and datetimes. ``received_at`` must know its zone. Never raises for any ``value``.
    """
    try:
        moment = _moment(value)
    except (ValueError, OverflowError):
        return None
    return moment if moment is not None and EARLIEST <= moment <= received_at + MAX_AHEAD else None


def epoch_ns(value: object) -> int | None:
    """Return the moment in nanoseconds since the epoch, read as by ``parse_timestamp`` but of any date; None for none.

    It is exact to the microsecond.
    """
    try:
        moment = _moment(value)
    except (ValueError, OverflowError):
        return None
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def in_utc(moment: datetime) -> datetime:
    """Return the moment in UTC; without a zone it is UTC. Raises ValueError if it lies outside UTC's calendar."""
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        # At the ends of the calendar there are hours in other zones that UTC does not reach.
        raise ValueError("outside the calendar of UTC") from None


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _from_epoch(Fraction(value))
    return _from_text(value.strip()) if isinstance(value, str) else None


def _from_text(text: str) -> datetime | None:
    if len(text) > _MAX_CHARS:
        return None
    if _NUMBER.fullmatch(text) and len(text) != _BASIC_DATE_CHARS:
        return _from_epoch(Fraction(text))
    # Ruby and PostgreSQL write the zone's name; fromisoformat reads Z and offsets.
    return in_utc(datetime.fromisoformat(re.sub(r"\s*(?:UTC|GMT)$", "Z", text.upper())))


def _from_epoch(epoch: Fraction) -> datetime | None:
    for bound, units_per_s in _UNITS_PER_S:
        if abs(epoch) < bound:
            return _EPOCH + timedelta(microseconds=int(epoch * 1_000_000 / units_per_s))
    return None
