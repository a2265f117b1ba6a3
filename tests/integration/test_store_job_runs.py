from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from tests.integration.store_examples import rows
from worker.store.store import Store

TICK = datetime(2026, 11, 30, 3, 10, tzinfo=UTC)
RUNS = "SELECT owner, outcome, detail, finished_at IS NOT NULL AS ended FROM job_runs ORDER BY scheduled_for"


def test_a_tick_belongs_to_whoever_enters_it_first(store: Store, database_url: str) -> None:
    assert store.job_runs.claim("job", TICK, "a")
    assert not store.job_runs.claim("job", TICK, "b")
    assert not store.job_runs.claim("job", TICK, "a")
    assert store.job_runs.claim("other job", TICK, "b")
    assert store.job_runs.claim("job", TICK + timedelta(days=1), "b")
    assert rows(database_url, RUNS)[0] == {"owner": "a", "outcome": "running", "detail": None, "ended": False}


def test_of_eight_threads_at_once_one_gets_the_tick(store: Store) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def claim(owner: str) -> int:
        barrier.wait()
        return sum(store.job_runs.claim("job", TICK + timedelta(minutes=number), owner) for number in range(50))

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, "abcdefgh")) == 50


def test_a_run_ends_once_with_what_it_did(store: Store, database_url: str) -> None:
    store.job_runs.claim("job", TICK, "a")
    store.job_runs.end("job", TICK, failed=False, detail="3 \0leases" + "x" * 2000)
    store.job_runs.end("job", TICK, failed=True, detail="too late")
    run = rows(database_url, RUNS)[0]
    assert (run["outcome"], run["ended"]) == ("done", True)
    assert run["detail"].startswith("3 leasesx")
    assert len(run["detail"]) == 1000
    assert rows(database_url, "SELECT seconds >= 0 AS told FROM v_job_runs")[0]["told"]


def test_a_run_can_fail(store: Store, database_url: str) -> None:
    store.job_runs.claim("job", TICK, "a")
    store.job_runs.end("job", TICK, failed=True, detail="ValueError")
    assert rows(database_url, RUNS) == [{"owner": "a", "outcome": "failed", "detail": "ValueError", "ended": True}]


def test_old_runs_are_forgotten_but_for_the_newest_of_each_job(store: Store, database_url: str) -> None:
    now = datetime.now(UTC)
    for job, days in (("rare", 90), ("rare", 60), ("daily", 40), ("daily", 31), ("daily", 29), ("daily", 0)):
        store.job_runs.claim(job, now - timedelta(days=days), "a")
        store.job_runs.end(job, now - timedelta(days=days), failed=False, detail=None)
    assert store.job_runs.prune(30) == 3
    assert store.job_runs.prune(30) == 0
    ages = "SELECT job, round(extract(epoch FROM now() - scheduled_for) / 86400)::int AS days FROM job_runs ORDER BY 2"
    assert [tuple(row.values()) for row in rows(database_url, ages)] == [("daily", 0), ("daily", 29), ("rare", 60)]


def test_a_run_of_which_no_end_was_booked_is_closed_after_a_day(store: Store, database_url: str) -> None:
    store.job_runs.claim("job", TICK, "dead")
    store.job_runs.claim("job", TICK + timedelta(days=1), "alive")
    rows(database_url, "UPDATE job_runs SET started_at = now() - interval '25 hours' WHERE owner = 'dead'")
    store.job_runs.prune(36_500)
    assert [tuple(row.values()) for row in rows(database_url, RUNS)] == [
        ("dead", "failed", "no end was booked", True),
        ("alive", "running", None, False),
    ]
