from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo

import psycopg
import pytest

from tests.bars import bar
from tests.integration.store_examples import rows
from tests.integration.tick_claimant import BEGINNINGS, PERIOD_S, TICKS
from tests.waiting import wait_until
from worker.errors import Stopped
from worker.jobs.due_times import ScheduledJob, every
from worker.jobs.maintenance import maintenance_jobs
from worker.jobs.schedule import Runner, scheduled_jobs
from worker.runtime.stop import Stop
from worker.store.store import Store, open_store

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUNS = "SELECT scheduled_for, owner, outcome, detail FROM job_runs ORDER BY scheduled_for"


class Work:
    """Counts how often it is done."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, _: threading.Event) -> str:
        self.times += 1
        return f"time {self.times}"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def _claimant(url: str, owner: str, zone: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-m", "tests.integration.tick_claimant", url, owner]
    environment = {**os.environ, "TZ": zone}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_three_schedulers_in_three_zones_run_each_tick_once_while_clocks_change(database_url: str) -> None:
    zones = {"berlin": "Europe/Berlin", "new-york": "America/New_York", "utc": "UTC"}
    with ExitStack() as stack:
        processes = {owner: stack.enter_context(_claimant(database_url, owner, zone)) for owner, zone in zones.items()}
        said = dict.fromkeys(zones, "")
        for _ in BEGINNINGS:
            for owner, process in processes.items():
                said[owner] += _until_ready(process)
            for process in processes.values():
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
        for owner, process in processes.items():
            said[owner] += process.communicate(timeout=120)[0]
            assert process.returncode == 0, said[owner]
    ran = [(name, tick) for owner in zones for name, tick in _runs(said[owner])]
    spans = [timedelta(seconds=PERIOD_S * number) for number in range(TICKS)]
    expected = [("often", beginning + span) for beginning in BEGINNINGS for span in spans]
    nights = [("nightly", day.replace(hour=1, minute=30)) for day in BEGINNINGS]
    nights += [(name, tick + timedelta(days=1)) for name, tick in nights]
    assert len(expected) == bar(1000, 248)
    assert Counter(ran) == Counter([*expected, *nights])
    assert all(_runs(said[owner]) for owner in zones), "each of them had a share"
    booked = rows(database_url, "SELECT job, scheduled_for, outcome FROM job_runs")
    assert Counter((row["job"], row["scheduled_for"]) for row in booked) == Counter(ran)
    assert {row["outcome"] for row in booked} == {"done"}
    assert {said[owner].split("offset ")[1].strip() for owner in zones} == {"1:00:00", "-1 day, 19:00:00", "0:00:00"}


def _until_ready(process: subprocess.Popen[str]) -> str:
    """What a claimant says before it is ready to begin."""
    assert process.stdout is not None
    said = ""
    while (line := process.stdout.readline()) != "ready\n":
        assert line, said
        said += line
    return said


def _runs(said: str) -> list[tuple[str, datetime]]:
    """The name and tick of each run that a claimant told of."""
    return [
        (words[1], datetime.fromisoformat(words[2])) for words in map(str.split, said.splitlines()) if words[0] == "ran"
    ]


def test_a_tick_that_nobody_ran_runs_at_the_first_wake_and_only_there(store: Store, database_url: str) -> None:
    work, clock = Work(), Clock()
    job = ScheduledJob("job", every(600), work)
    for owner in ("a", "b", "b"):
        Runner(store.job_runs, owner, clock).wake(job)
    assert work.times == 1
    assert rows(database_url, RUNS) == [
        {"scheduled_for": NOON, "owner": "a", "outcome": "done", "detail": "time 1"},
    ]


def test_ticks_that_went_by_unseen_are_caught_up_with_one_run(store: Store, database_url: str) -> None:
    work, clock = Work(), Clock()
    job = ScheduledJob("job", every(600), work)
    runner = Runner(store.job_runs, "a", clock)
    runner.wake(job)
    clock.now = NOON + timedelta(hours=5, seconds=1)
    runner.wake(job)
    runner.wake(job)
    assert [row["scheduled_for"] for row in rows(database_url, RUNS)] == [NOON, NOON + timedelta(hours=5)]
    assert work.times == 2


def test_a_worker_whose_clock_is_ahead_enters_no_due_time_of_the_future(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Ahead:
            return super().now(tz) + timedelta(seconds=120)

    monkeypatch.setattr("worker.jobs.schedule.datetime", Ahead)
    Runner(store.job_runs, "ahead").wake(ScheduledJob("job", every(1), Work()))
    assert rows(database_url, "SELECT scheduled_for <= clock_timestamp() AS is_past FROM job_runs") == [
        {"is_past": True}
    ]


def test_leaving_abandons_a_job_that_does_not_leave_off(store: Store) -> None:
    started, end = threading.Event(), threading.Event()

    def last(_: threading.Event) -> str:
        started.set()
        end.wait(60)
        return ""

    stop = Stop(grace_s=0.2)
    with scheduled_jobs(store.job_runs, "a", [ScheduledJob("deaf", every(3600), last)], stop):
        assert started.wait(30)
    assert stop.has_abandoned
    end.set()


def test_a_tick_that_the_database_could_not_give_is_run_at_a_later_wake(database_url: str) -> None:
    work, clock = Work(), Clock()
    job = ScheduledJob("job", every(600), work)
    url = f"{database_url}&options=-c%20lock_timeout%3D50"
    with open_store(url, application_name="gasp-test") as store:
        runner = Runner(store.job_runs, "a", clock)
        with _locked(database_url, "job_runs"):
            runner.wake(job)
            assert work.times == 0
        clock.now = NOON + timedelta(seconds=599)
        runner.wake(job)
    assert [row["scheduled_for"] for row in rows(database_url, RUNS)] == [NOON]
    assert work.times == 1


def test_a_run_whose_end_cannot_be_booked_is_not_run_again_and_stops_nobody(database_url: str) -> None:
    clock = Clock()
    with ExitStack() as stack:
        store = stack.enter_context(
            open_store(f"{database_url}&options=-c%20lock_timeout%3D50", application_name="gasp-test")
        )
        work = Work()

        def lock_the_books(stop: threading.Event) -> str:
            stack.enter_context(_locked(database_url, "job_runs"))
            return work(stop)

        runner = Runner(store.job_runs, "a", clock)
        runner.wake(ScheduledJob("job", every(600), lock_the_books))
        runner.wake(ScheduledJob("job", every(600), lock_the_books))
        assert work.times == 1
    assert [row["outcome"] for row in rows(database_url, RUNS)] == ["running"]


def test_three_schedulers_go_on_beside_a_job_that_always_raises(database_url: str) -> None:
    work = [Work() for _ in range(3)]
    with ExitStack() as stack:
        for number in range(3):
            store = stack.enter_context(open_store(database_url, application_name="gasp-test"))
            jobs = (ScheduledJob("good", every(1), work[number]), ScheduledJob("bad", every(1), _raise))
            stack.enter_context(scheduled_jobs(store.job_runs, f"owner-{number}", jobs, Stop()))
        ended = "SELECT count(*) AS n FROM job_runs WHERE job = %(job)s AND outcome = %(outcome)s"
        wait_until(lambda: _count(database_url, ended, job="good", outcome="done") >= 3, what="the good job")
        wait_until(lambda: _count(database_url, ended, job="bad", outcome="failed") >= 3, what="the bad job")
    done = rows(database_url, "SELECT * FROM job_runs WHERE job = 'good'")
    assert len(done) == sum(one.times for one in work)
    bad = rows(database_url, "SELECT outcome, detail FROM job_runs WHERE job = 'bad'")
    assert {(row["outcome"], row["detail"]) for row in bad} == {("failed", "ValueError")}


def test_leaving_stops_a_job_at_work_and_its_run_says_so(store: Store, database_url: str) -> None:
    started = threading.Event()

    def last_until_stopped(stop: threading.Event) -> str:
        started.set()
        assert stop.wait(60)
        raise Stopped("job")

    with scheduled_jobs(store.job_runs, "a", [ScheduledJob("long", every(3600), last_until_stopped)], Stop()):
        assert started.wait(30)
    assert [(row["outcome"], row["detail"]) for row in rows(database_url, RUNS)] == [("failed", "stopped")]


def test_the_jobs_of_a_worker_all_run_once_at_a_first_start(store: Store, database_url: str) -> None:
    with scheduled_jobs(store.job_runs, "a", maintenance_jobs(store), Stop()):
        others = "SELECT count(*) AS n FROM job_runs WHERE job <> 'reap_leases' AND outcome = 'done'"
        wait_until(lambda: _count(database_url, others) == 9, what="the other jobs")
    outcomes = rows(database_url, "SELECT DISTINCT job, outcome, detail FROM job_runs ORDER BY job")
    assert [tuple(row.values()) for row in outcomes] == [
        ("close_replaced", "done", None),
        ("empty_traces", "done", None),
        ("ensure_weeks", "done", None),
        ("follow_traffic", "done", None),
        ("prune_runs", "done", None),
        ("reap_leases", "done", None),
        ("recalibrate", "done", None),
        ("retention", "done", None),
        ("review_paces", "done", None),
        ("settle_early_labels", "done", None),
    ]


def _raise(_: threading.Event) -> str:
    raise ValueError("what a user wrote")


def _count(url: str, query: str, **parameters: object) -> int:
    return int(rows(url, query, **parameters)[0]["n"])


@contextmanager
def _locked(url: str, table: str) -> Iterator[None]:
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://")) as other:
        other.execute(f"LOCK TABLE {table}")
        yield
        other.rollback()
