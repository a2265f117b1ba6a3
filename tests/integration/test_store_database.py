"""The rule by which a unit of work is run again, on the faults themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, text

from tests.integration.store_examples import rows
from worker.store.database import ATTEMPTS, Database
from worker.store.engine import open_engine
from worker.store.errors import StoreConflict, StoreNotReady, StoreRejected, StoreUnavailable

KEPT = "SELECT app FROM retention_periods ORDER BY app"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    # Two that wait for each other are found out at once.
    opened = Database(open_engine(f"{database_url}&options=-c%20deadlock_timeout%3D10ms", application_name="gasp-test"))
    yield opened
    opened.close()


class Unit:
    """Writes a row, then runs a statement that fails; counts its runs."""

    def __init__(self, statement: str) -> None:
        self.runs = 0
        self._statement = statement

    def __call__(self, connection: Connection) -> None:
        self.runs += 1
        connection.execute(text("INSERT INTO retention_periods (app, keep_days) VALUES ('shop', 30)"))
        connection.execute(text(self._statement))


def raising(code: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'a test' USING ERRCODE = '{code}'; END $$"


def test_two_that_wait_for_each_other_both_get_through(database: Database, database_url: str) -> None:
    rows(database_url, "INSERT INTO retention_periods (app, keep_days) VALUES ('a', 1), ('b', 1)")
    both_have_one = threading.Barrier(2, timeout=30)
    runs: list[str] = []
    first_run = threading.local()

    def add(names: str) -> None:
        def work(connection: Connection) -> None:
            runs.append(names)
            for name in names:
                connection.execute(
                    text("UPDATE retention_periods SET keep_days = keep_days + 1 WHERE app = :app"), {"app": name}
                )
                if not getattr(first_run, "over", False):
                    first_run.over = True
                    both_have_one.wait()

        database.write(work)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(add, ("ab", "ba")))
    assert len(runs) == 3, "one of them was run again"
    assert rows(database_url, "SELECT DISTINCT keep_days FROM retention_periods") == [{"keep_days": 3}]


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_unit_that_meets_another_one_every_time_is_given_up_and_leaves_nothing(
    database: Database, database_url: str, code: str
) -> None:
    unit = Unit(raising(code))
    with pytest.raises(StoreConflict):
        database.write(unit)
    assert unit.runs == ATTEMPTS
    assert rows(database_url, KEPT) == []


@pytest.mark.parametrize("code", ["40003", "08006", "57P01", "53100", "55P03"])
def test_what_may_have_been_committed_or_does_not_heal_at_once_is_not_run_again(database: Database, code: str) -> None:
    unit = Unit(raising(code))
    with pytest.raises(StoreUnavailable) as raised:
        database.write(unit)
    assert not isinstance(raised.value, StoreConflict)
    assert unit.runs == 1


def test_a_connection_that_is_lost_in_the_commit_is_not_answered_by_another_run(
    database: Database, database_url: str
) -> None:
    rows(
        database_url,
        """
        CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_terminate_backend(pg_backend_pid());
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER end_session AFTER INSERT ON retention_periods DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION end_session()
        """,
    )
    unit = Unit("SELECT 1")
    with pytest.raises(StoreUnavailable):
        database.write(unit)
    assert unit.runs == 1


def test_a_unit_without_its_weekly_partition_is_run_again_when_that_is_made(
    database: Database, database_url: str
) -> None:
    for row in rows(database_url, "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"):
        rows(database_url, f"DROP TABLE {row['relname']}")
    unit = Unit(
        "INSERT INTO chunk_attributions (verdict_id, sentence_index, chunk_index, passage_position, start_char, "
        "end_char, chunk_group, drop, jsd, scored_at) VALUES (1, 0, 0, 0, 0, 1, 0, 0, 0, now())"
    )
    with pytest.raises(StoreRejected, match="ForeignKeyViolation"):
        database.write(unit)
    assert unit.runs == 2


def test_a_read_cannot_write(database: Database, database_url: str) -> None:
    with pytest.raises(StoreUnavailable, match="read-only"), database.read() as connection:
        Unit("SELECT 1")(connection)
    assert rows(database_url, KEPT) == []
    # The next unit on the same connection may.
    database.write(Unit("SELECT 1"))
    assert rows(database_url, KEPT) == [{"app": "shop"}]


def test_a_server_that_only_reads_is_heard_by_a_unit_on_a_connection_that_has_read(database_url: str) -> None:
    options = "-c%20default_transaction_read_only%3Don"
    database = Database(open_engine(f"{database_url}&options={options}", application_name="gasp-test"))
    with database.read() as connection:
        connection.execute(text(KEPT))
    with pytest.raises(StoreUnavailable) as raised:
        database.write(Unit("SELECT 1"))
    assert raised.value.sqlstate == "25006"
    database.close()


def test_a_read_whose_connection_is_lost_is_told_and_the_next_one_has_another(database: Database) -> None:
    with pytest.raises(StoreUnavailable), database.read() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    with database.read() as connection:
        assert connection.scalar(text("SHOW transaction_read_only")) == "on"


def test_a_conflict_of_a_read_is_told_at_once(database: Database) -> None:
    with pytest.raises(StoreConflict), database.read() as connection:
        connection.execute(text(raising("40001")))


def test_what_is_wrong_with_the_statement_is_not_tried_twice(database: Database) -> None:
    unit = Unit("SELECT * FROM no_such_table")
    with pytest.raises(StoreNotReady):
        database.write(unit)
    assert unit.runs == 1
