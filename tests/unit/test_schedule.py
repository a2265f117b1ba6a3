from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from apscheduler.triggers.cron import CronTrigger
from hypothesis import given
from hypothesis import strategies as st

from worker.jobs.due_times import Schedule, daily, every
from worker.jobs.maintenance import maintenance_jobs
from worker.store.store import open_store

NIGHTLY = daily(time(3, 10))
SCHEDULES = st.builds(Schedule, st.integers(1, 1_000_000), st.integers(0, 1_000_000))
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1), timezones=st.timezones())  # noqa: DTZ001 - given a zone


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]  # the parts of a time, as many as are given


@pytest.mark.parametrize(
    ("schedule", "now", "tick"),
    [
        (every(10), utc(2026, 11, 30, 12, 0, 9), utc(2026, 11, 30, 12, 0, 0)),
        (every(10), utc(2026, 11, 30, 12, 0, 10), utc(2026, 11, 30, 12, 0, 10)),
        (every(7), utc(1970, 1, 1, 0, 0, 20), utc(1970, 1, 1, 0, 0, 14)),
        (NIGHTLY, utc(2026, 11, 30, 3, 9, 59), utc(2026, 11, 29, 3, 10)),
        (NIGHTLY, utc(2026, 11, 30, 3, 10), utc(2026, 11, 30, 3, 10)),
        (NIGHTLY, utc(2026, 1, 1, 0, 0), utc(2025, 12, 31, 3, 10)),
        (daily(time(0, 0)), utc(2024, 2, 29, 23, 59, 59), utc(2024, 2, 29)),
    ],
)
def test_the_latest_tick_is_the_last_that_is_not_after_now(schedule: Schedule, now: datetime, tick: datetime) -> None:
    assert schedule.latest(now) == tick


@given(SCHEDULES, MOMENTS)
def test_a_tick_lies_less_than_a_period_back_and_is_its_own_latest(schedule: Schedule, now: datetime) -> None:
    tick = schedule.latest(now)
    assert timedelta() <= now - tick < timedelta(seconds=schedule.period_s)
    assert schedule.latest(tick) == tick
    assert (tick.timestamp() - schedule.offset_s) % schedule.period_s == 0


@given(SCHEDULES, MOMENTS, st.timezones())
def test_the_zone_in_which_a_time_is_told_changes_nothing(schedule: Schedule, now: datetime, zone: ZoneInfo) -> None:
    moment = now.astimezone(UTC)
    assert schedule.latest(moment.astimezone(zone)) == schedule.latest(moment)
    assert schedule.latest(moment.astimezone(zone)).tzinfo is UTC


@pytest.mark.parametrize(
    ("zone", "hour", "day"), [("Europe/Berlin", 2, utc(2026, 10, 25)), ("America/New_York", 1, utc(2026, 11, 1))]
)
def test_a_local_time_fires_twice_in_the_night_in_which_clocks_go_back_and_ours_once(
    zone: str, hour: int, day: datetime
) -> None:
    begin, end = day - timedelta(hours=6), day + timedelta(hours=18)
    theirs = list(_fires(CronTrigger(hour=hour, minute=30, timezone=zone), begin, end))
    assert [fired - theirs[0] for fired in theirs] == [timedelta(), timedelta(hours=1)]
    assert len(_ticks(daily(time(hour, 30)), begin, end)) == 1


def test_local_days_are_23_and_25_hours_apart_when_clocks_change_and_ours_are_always_24() -> None:
    begin, end = utc(2026, 1, 1), utc(2026, 12, 31)
    theirs = list(_fires(CronTrigger(hour=5, timezone="Europe/Berlin"), begin, end))
    ours = sorted(_ticks(daily(time(5)), begin, end))
    assert _distances(theirs) == {timedelta(hours=23), timedelta(hours=24), timedelta(hours=25)}
    assert _distances(ours) == {timedelta(hours=24)}


def test_the_jobs_have_names_of_their_own() -> None:
    with open_store("postgresql://nobody@127.0.0.1:1/none", application_name="gasp-test") as store:
        names = [job.name for job in maintenance_jobs(store)]
    assert len(set(names)) == len(names)
    assert {"reap_leases", "ensure_weeks", "retention", "prune_runs"} <= set(names)


def _fires(trigger: CronTrigger, begin: datetime, end: datetime) -> Iterator[datetime]:
    """When the trigger fires, in UTC, asked as APScheduler asks it."""
    fires = trigger.get_next_fire_time(None, begin)
    while (moment := fires.astimezone(UTC)) < end:
        yield moment
        fires = trigger.get_next_fire_time(fires, moment)


def _ticks(schedule: Schedule, begin: datetime, end: datetime) -> set[datetime]:
    looks = (begin + timedelta(minutes=10) * number for number in range((end - begin) // timedelta(minutes=10)))
    found = {schedule.latest(look) for look in looks}
    return {tick for tick in found if tick >= begin}


def _distances(moments: list[datetime]) -> set[timedelta]:
    return {later - sooner for sooner, later in pairwise(moments)}
