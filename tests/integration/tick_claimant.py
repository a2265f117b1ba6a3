"""A scheduler in a process of its own that lives through the nights in which clocks change, at full speed."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, time, timedelta
from functools import partial

from tests.bars import bar
from worker.jobs.due_times import Schedule, ScheduledJob, daily, every
from worker.jobs.schedule import Runner
from worker.store.store import open_store

# So many ticks last from Saturday morning until late on Sunday.
PERIOD_S = bar(600, 2400)
TICKS = bar(250, 62)
# From Saturday morning on; the clocks change on Sunday: in the United States, in Europe, and back.
BEGINNINGS = tuple(datetime(2026, *day, 6, tzinfo=UTC) for day in ((3, 7), (3, 28), (10, 24), (10, 31)))


class LocalClock:
    """A time that is told in the zone of the process, as ``TZ`` says."""

    def __init__(self) -> None:
        self.epoch_s = 0.0

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self.epoch_s, UTC).astimezone()


def main() -> None:
    """Run what is due at jittered moments; print name and tick of each run. Database and owner are the arguments."""
    url, owner = sys.argv[1:]
    clock = LocalClock()
    jitter = random.Random(owner)
    with open_store(url, application_name=owner) as store:
        store.server.ping()
        runner = Runner(store.job_runs, owner, clock)
        schedules = {"often": every(PERIOD_S), "nightly": daily(time(1, 30))}
        jobs = [
            ScheduledJob(name, schedule, partial(_tell, name, schedule, clock)) for name, schedule in schedules.items()
        ]
        for beginning in BEGINNINGS:
            # So that one that is slow begins each of them with the others.
            print("ready", flush=True)
            sys.stdin.readline()
            clock.epoch_s = beginning.timestamp()
            while clock.epoch_s < (beginning + timedelta(seconds=PERIOD_S * TICKS)).timestamp():
                for job in jobs:
                    runner.wake(job)
                clock.epoch_s += jitter.uniform(PERIOD_S * 0.1, PERIOD_S * 0.99)
    print("offset", clock().utcoffset())


def _tell(name: str, schedule: Schedule, clock: LocalClock, *_: object) -> str:
    print("ran", name, schedule.latest(clock()).isoformat())
    return ""


if __name__ == "__main__":
    main()
