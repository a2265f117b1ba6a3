"""Behind a pooler that gives each transaction another server connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from migrations.errors import MigrationError
from migrations.upgrade import upgrade
from tests.integration.store_examples import advance, claim, prepared, rows, scored
from tests.pgbouncer import PgBouncerCannotRun, pgbouncer
from worker.store.errors import StoreNotReady
from worker.store.store import Store, open_store

BATCHES = 12


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """The database of the test by way of PgBouncer, which has two connections to it."""
    try:
        with pgbouncer(database_url) as url:
            yield url
    except PgBouncerCannotRun as error:
        pytest.skip(f"PgBouncer cannot run here: {error}")


def test_stores_share_the_connections_of_a_pooler(pooled_url: str, database_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        opened = [open_store(pooled_url, application_name=f"gasp-test-{number}") for number in range(4)]
        scorer_id, threshold = prepared(opened[0])
        begin = threading.Barrier(4)

        def work(number: int, store: Store) -> None:
            assert store.offsets.claim(claim(number)) is not None
            begin.wait(30)
            for batch in range(BATCHES):
                one = scored(batch, f"{number}-{batch}", [0.05, 0.9], threshold, partition=number)
                store.settlements.settle(scorer_id, [one], [advance(batch, batch + 1, number)])
                assert store.ledger.counts()
                assert store.thresholds.in_force(scorer_id)

        list(threads.map(work, range(4), opened))
        for store in opened:
            store.close()
    assert rows(database_url, "SELECT count(*) AS n FROM ledger") == [{"n": 4 * BATCHES}]
    assert rows(database_url, "SELECT count(DISTINCT interaction_id) AS n FROM interactions") == [{"n": 4 * BATCHES}]


def test_nothing_of_a_session_stays_behind_for_whoever_comes_next(pooled_url: str) -> None:
    with open_store(pooled_url, application_name="gasp-test") as store:
        prepared(store)
        for _ in range(8):
            store.thresholds.versions()
    with psycopg.connect(pooled_url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as other:
        seen = [other.execute("SHOW statement_timeout").fetchone() for _ in range(4)]
        assert set(seen) == {("0",)}
        assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)


def test_a_pooler_that_refuses_what_the_url_asks_for_is_told_as_that(pooled_url: str) -> None:
    with (
        open_store(f"{pooled_url}?options=-c%20work_mem%3D8MB", application_name="gasp-test") as store,
        pytest.raises(StoreNotReady, match=r"unsupported startup parameter.*ignore_startup_parameters"),
    ):
        store.server.ping()


def test_migrations_are_refused_and_leave_no_lock_behind(pooled_url: str, database_url: str) -> None:
    with pytest.raises(MigrationError, match=r"a connection pooler .* the server's own address in GASP_DATABASE_URL"):
        upgrade(pooled_url)
    assert rows(database_url, "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory'") == [{"n": 0}]
    upgrade(database_url)
