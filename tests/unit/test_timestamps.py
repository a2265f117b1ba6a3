from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.timestamps import EARLIEST, MAX_AHEAD, epoch_ns, parse_timestamp

RECEIVED_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
MOMENT = datetime(2025, 6, 1, 12, 30, tzinfo=UTC)
EPOCH_S = int(MOMENT.timestamp())


def parse(value: object) -> datetime | None:
    return parse_timestamp(value, received_at=RECEIVED_AT)


@pytest.mark.parametrize(
    "logged",
    [
        EPOCH_S,
        EPOCH_S * 10**3,
        EPOCH_S * 10**6,
        EPOCH_S * 10**9,
        float(EPOCH_S),
        EPOCH_S * 1e3,
        str(EPOCH_S),
        str(EPOCH_S * 10**9),
        f" {EPOCH_S}.0 ",
        f"{EPOCH_S / 1e9}e9",
        "2025-06-01T12:30:00Z",
        "2025-06-01t12:30:00z",
        "2025-06-01T12:30:00.000000000Z",
        "2025-06-01T14:30:00+02:00",
        "2025-06-01 12:30",
        "2025-06-01 12:30:00.000000",
        "2025-06-01 12:30:00 UTC",
        "2025-06-01 12:30:00 GMT",
        "20250601T123000",
        MOMENT,
        MOMENT.replace(tzinfo=None),
        MOMENT.astimezone(timezone(timedelta(hours=-5))),
    ],
)
def test_the_same_moment_is_read_from_every_form(logged: object) -> None:
    assert parse(logged) == MOMENT


def test_a_date_alone_is_its_first_moment() -> None:
    assert parse("2025-06-01") == parse("20250601") == datetime(2025, 6, 1, tzinfo=UTC)


def test_microseconds_survive_nanosecond_epochs() -> None:
    assert parse(EPOCH_S * 10**9 + 123_456_789) == MOMENT + timedelta(microseconds=123_456)


@pytest.mark.parametrize(
    "logged",
    [
        None,
        True,
        "",
        "yesterday",
        "1999-12-31T23:59:59Z",
        "12000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2025-06-01T25:00:00Z",
        "2025",
        "1" * 5000,
        "1e999",
        "nan",
        "٢٠٢٥",
        316_516_204_800,
        -1,
        0,
        10**30,
        10**400,
        1e300,
        float("nan"),
        float("-inf"),
        [EPOCH_S],
        {"seconds": EPOCH_S},
        Decimal(EPOCH_S),
    ],
)
def test_what_is_no_time_in_the_valid_range_is_none(logged: object) -> None:
    assert parse(logged) is None


def test_the_valid_range_ends_one_day_after_receipt() -> None:
    second = timedelta(seconds=1)
    assert parse(EARLIEST) == EARLIEST
    assert parse(EARLIEST - second) is None
    assert parse(RECEIVED_AT + MAX_AHEAD) == RECEIVED_AT + MAX_AHEAD
    assert parse(RECEIVED_AT + MAX_AHEAD + second) is None


@given(st.datetimes(EARLIEST.replace(tzinfo=None), RECEIVED_AT.replace(tzinfo=None)), st.sampled_from([0, 3, 6, 9]))
@settings(deadline=None)
def test_an_epoch_is_read_in_the_unit_in_which_it_was_written(moment: datetime, digits: int) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    epoch = int(moment.timestamp()) * 10**digits
    assert parse(epoch) == parse(str(epoch)) == moment
    assert parse(moment.isoformat()) == moment


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.datetimes())
@settings(deadline=None)
def test_no_value_makes_it_raise(logged: object) -> None:
    moment = parse(logged)
    assert moment is None or (moment.tzinfo is UTC and EARLIEST <= moment <= RECEIVED_AT + MAX_AHEAD)


@pytest.mark.parametrize("logged", [EPOCH_S, "2025-06-01T12:30:00.000000", "2025-06-01T14:30:00+02:00", MOMENT])
def test_a_moment_is_so_many_nanoseconds_after_the_epoch(logged: object) -> None:
    assert epoch_ns(logged) == EPOCH_S * 10**9


def test_of_a_date_before_any_log_nanoseconds_are_known_too() -> None:
    assert epoch_ns("1970-01-01T00:00:00.000001Z") == 1000
    nones: tuple[object, ...] = (None, "soon", True, "9" * 70, [])
    assert {epoch_ns(logged) for logged in nones} == {None}
