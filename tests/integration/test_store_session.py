"""A server that is frozen is given up; one that is slow is not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import make_url

from tests.frozen import frozen
from worker.embedded.postgres import embedded_postgres
from worker.store.engine import open_engine
from worker.store.errors import StoreUnavailable
from worker.store.faults import translated
from worker.store.session import Session, endless, open_session
from worker.store.store import open_store


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server of our own, to be frozen; its URL."""
    with tempfile.TemporaryDirectory(prefix="gasp-frozen-") as folder:
        Path(folder).chmod(0o755)
        with embedded_postgres(Path(folder), durable=False) as url:
            yield url


def opened(url: str, left_s: Callable[[], float] = endless) -> Session:
    """A session that soon asks whether the server lives."""
    address = make_url(url)
    parameters = {"host": address.query["host"], "user": address.username, "dbname": address.database}
    session = open_session(parameters, left_s)
    assert session.patience is not None
    session.patience = replace(session.patience, silence_s=0.3)
    return session


def test_a_wait_for_a_frozen_server_ends_and_the_connection_is_closed(server: str) -> None:
    session = opened(server)
    with frozen(server), pytest.raises(psycopg.OperationalError, match=r"does not answer: .* on another connection"):
        session.execute("SELECT 1")
    assert session.closed


def test_a_server_that_is_slow_is_waited_for(server: str) -> None:
    with opened(server) as session:
        assert session.execute("SELECT 1 FROM pg_sleep(1.5)").fetchone() == (1,)


def test_no_wait_is_longer_than_its_bound(server: str) -> None:
    session = opened(server)
    assert session.patience is not None
    session.patience = replace(session.patience, longest_s=0.5)
    with pytest.raises(psycopg.OperationalError, match=r"no answer within 0\.5 s"):
        session.execute("SELECT pg_sleep(60)")
    assert session.closed


def test_when_the_time_for_a_stop_is_up_only_a_server_that_answers_is_heard(server: str) -> None:
    left = [60.0]
    session = opened(server, lambda: left[0])
    with frozen(server):
        left[0] = 0.0
        with pytest.raises(psycopg.OperationalError, match="the time that a stop leaves"):
            session.execute("SELECT 1")
    with opened(server, lambda: 0.0) as other:
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_an_idle_connection_to_a_frozen_server_is_a_fault_and_no_reason_to_wait_for_another(server: str) -> None:
    engine = open_engine(server, application_name="gasp-test")
    soon = {"silence_s": 0.3}
    event.listen(engine, "connect", lambda session, _: setattr(session, "patience", replace(session.patience, **soon)))
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    silence = pytest.raises(StoreUnavailable, match=r"does not answer: .* on another connection")
    with frozen(server), silence, translated(engine.url):
        engine.connect()
    with engine.connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1
    engine.dispose()


def test_the_store_says_that_the_server_is_away(server: str) -> None:
    left = [60.0]
    with open_store(server, application_name="gasp-test", left_s=lambda: left[0]) as store:
        assert store.server.ping()
        with frozen(server):
            left[0] = 0.0
            with pytest.raises(StoreUnavailable, match="GASP_DATABASE_URL"):
                store.server.ping()
        assert store.server.ping()
