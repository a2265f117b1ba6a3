from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import make_url, text

from migrations.revisions import head_revision
from tests.integration.store_examples import advance, prepared, rows, scored
from tests.waiting import wait_until
from worker.errors import WorkerError
from worker.store.database import Database
from worker.store.engine import open_engine
from worker.store.errors import StoreNotReady, StoreUnavailable
from worker.store.faults import translated
from worker.store.schema import require_usable_schema
from worker.store.store import Store, open_store


def test_a_store_knows_its_server_and_its_schema(store: Store) -> None:
    assert store.server.ping().startswith("18")
    assert store.server.schema().revision == head_revision()


def test_an_unmigrated_database_answers_but_has_no_revision_and_no_tables(empty_database_url: str) -> None:
    store = open_store(empty_database_url, application_name="gasp-test")
    assert store.server.ping()
    assert store.server.schema().revision is None
    with pytest.raises(StoreNotReady, match="partition_offsets"):
        store.offsets.positions("topic")
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://somebody:s3cret@127.0.0.1:1/nowhere",
        "postgresql://somebody@127.0.0.1:1/nowhere?password=s3cret",
        "postgres://somebody:s3cret@name.invalid/nowhere",
    ],
)
def test_a_server_that_does_not_answer_is_unavailable_and_the_password_stays_secret(url: str) -> None:
    store = open_store(url, application_name="gasp-test")
    with pytest.raises(StoreUnavailable) as raised:
        store.server.ping()
    assert "s3cret" not in str(raised.value)
    assert "somebody" not in url.split("@")[1]
    assert any(place in str(raised.value) for place in ("127.0.0.1", "name.invalid"))
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_missing_database_needs_somebody_to_act(database_url: str) -> None:
    store = open_store(database_url.replace("/test_", "/missing_"), application_name="gasp-test")
    with pytest.raises(StoreNotReady, match="does not exist"):
        store.server.ping()


@pytest.mark.parametrize(
    ("right", "problem"),
    [("NOLOGIN", "not permitted to log in"), ("LOGIN", "permission denied for database")],
)
def test_a_login_that_is_not_let_in_needs_somebody_to_act(database_url: str, right: str, problem: str) -> None:
    name = f"unwelcome_{right.lower()}"
    database = make_url(database_url).database
    rows(database_url, f"CREATE ROLE {name} {right}")
    rows(database_url, f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC")
    try:
        with (
            open_store(database_url.replace("postgres@", f"{name}@"), application_name="gasp-test") as store,
            pytest.raises(StoreNotReady, match=f"{problem}.*GASP_DATABASE_URL"),
        ):
            store.server.ping()
    finally:
        rows(database_url, f"DROP ROLE {name}")


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "s3cret", ""])
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(StoreNotReady) as raised:
        open_store(url, application_name="gasp-test")
    assert "s3cret" not in str(raised.value)


def test_a_database_of_an_earlier_revision_says_which_command_helps(store: Store, database_url: str) -> None:
    rows(database_url, "DROP TABLE schema_revisions")
    with pytest.raises(WorkerError, match=r"0007.*gasp-worker migrate.*--roles-sql"):
        require_usable_schema(store.server)


LATER = "INSERT INTO schema_revisions (revision, kind, completes) VALUES "


def test_a_database_that_a_later_release_has_only_added_to_can_be_used(store: Store, database_url: str) -> None:
    rows(database_url, f"{LATER} ('9998', 'expand', NULL), ('9999', 'contract', '{head_revision()}')")
    require_usable_schema(store.server)
    assert store.server.schema().revision == "9999"


def test_a_database_that_lacks_what_this_version_uses_is_refused(store: Store, database_url: str) -> None:
    rows(database_url, f"{LATER} ('9998', 'expand', NULL), ('9999', 'contract', '9998')")
    with pytest.raises(WorkerError, match=r"9999.*know 9998.*install the version"):
        require_usable_schema(store.server)


def test_a_store_works_again_after_its_connections_were_cut(store: Store, database_url: str) -> None:
    assert store.server.ping()
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gasp-test' AND datname = "
    rows(database_url, cut + "current_database()")
    assert store.server.ping()


def test_a_driver_that_has_lost_the_thread_of_a_connection_is_a_server_that_is_away() -> None:
    lost = psycopg.InternalError("received 2 results from command 'COMMIT'")
    with (
        pytest.raises(StoreUnavailable, match=r"received 2 results .* GASP_DATABASE_URL"),
        translated(make_url("postgresql+psycopg://localhost/none")),
    ):
        raise lost


def test_a_connection_that_is_cut_in_a_transaction_is_unavailable_and_writes_nothing(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer_id, threshold = prepared(store)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"

    def pull_the_plug(*_: object) -> dict[str, int]:
        rows(database_url, f"{cut} AND datname = current_database()")
        return {}

    monkeypatch.setattr("worker.store.settlements.write_ledger", pull_the_plug)
    with pytest.raises(StoreUnavailable):
        store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    monkeypatch.undo()
    assert rows(database_url, "SELECT * FROM interactions") == []
    assert store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)]).fenced == ()


def test_every_connection_has_its_timeouts_and_utc(store: Store) -> None:
    with store._database.read() as connection:
        settings = {
            name: connection.scalar(text(f"SHOW {name}"))
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "timezone")
        }
    assert settings == {
        "statement_timeout": "1min",
        "lock_timeout": "30s",
        "idle_in_transaction_session_timeout": "1min",
        "timezone": "UTC",
    }


def test_options_of_the_url_are_kept_and_win(database_url: str) -> None:
    store = open_store(f"{database_url}&options=-c%20statement_timeout%3D200", application_name="gasp-test")
    scorer_id, threshold = prepared(store)
    plain = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(plain) as other:
        other.execute("SELECT * FROM partition_offsets FOR UPDATE")
        with pytest.raises(StoreUnavailable, match="statement timeout") as raised:
            store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    assert raised.value.sqlstate == "57014"
    store.close()


def test_a_store_serves_more_threads_than_it_has_connections(store: Store) -> None:
    barrier = threading.Barrier(12, timeout=30)

    def ask(_: int) -> set[str]:
        barrier.wait()
        return {store.server.ping() for _ in range(20)}

    with ThreadPoolExecutor(12) as threads:
        assert set(map(len, threads.map(ask, range(12)))) == {1}


def test_a_connection_that_is_in_use_when_the_store_closes_is_closed_when_its_transaction_ends(
    database_url: str,
) -> None:
    engine = open_engine(database_url, application_name="gasp-closing")
    open_ones = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'gasp-closing'"
    database = Database(engine)
    with database.read() as connection:
        connection.execute(text("SELECT 1"))
        Store(database).close()
        assert rows(database_url, open_ones) == [{"n": 1}]
    wait_until(lambda: rows(database_url, open_ones) == [{"n": 0}], what="the connection to close")


def test_a_connection_that_is_opened_after_the_store_was_closed_is_closed_with_its_transaction(
    database_url: str,
) -> None:
    """By a thread that ends late."""
    store = open_store(database_url, application_name="gasp-late")
    open_ones = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'gasp-late'"
    store.close()
    assert store.server.ping()
    wait_until(lambda: rows(database_url, open_ones) == [{"n": 0}], what="the connection to close")
