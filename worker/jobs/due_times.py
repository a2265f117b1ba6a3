"""When a scheduled job is due, counted from the epoch: daylight saving, restarts and other clocks change nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due every ``period_s`` seconds, for the first time ``offset_s`` seconds after the epoch."""

    period_s: int
    offset_s: int = 0

    def latest(self, now: datetime) -> datetime:
        """The last due time that is not after ``now``, which may be in any zone; in UTC."""
        since_first = (now - _EPOCH) - timedelta(seconds=self.offset_s)
        periods = since_first // timedelta(seconds=self.period_s)
        return _EPOCH + timedelta(seconds=self.offset_s + periods * self.period_s)


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """Something that is done once per due time, whatever the number of workers.

    ``work`` says in a few words what it did, or nothing, and never quotes a message. It leaves off with Stopped soon
    after the event is set. It may be ended at any point and must be safe to run again.
    """

    name: str
    schedule: Schedule
    work: Callable[[threading.Event], str]


def every(seconds: int) -> Schedule:
    """Due times that are so many seconds apart."""
    return Schedule(seconds)


def daily(at: time) -> Schedule:
    """Due once a day, at a time in UTC."""
    return Schedule(_DAY_S, (at.hour * 60 + at.minute) * 60 + at.second)
