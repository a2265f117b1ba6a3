"""The files of views and functions against a migrated database, and a migration beside those who use it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine

import migrations
from migrations.database_url import engine_url
from migrations.definitions import applied_definitions, apply_definitions, current_definitions
from migrations.errors import MigrationError
from migrations.revisions import LAST_UNDECLARED, head_revision
from migrations.upgrade import downgrade, upgrade
from schemas.review_label import Label
from tests.integration.store_examples import rows
from tests.waiting import wait_until

VERSIONS = Path(migrations.__file__).parent / "versions"
DEFINITIONS = """
SELECT c.relname AS name, pg_get_viewdef(c.oid) AS text, array_agg(a.attname::text ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace
GROUP BY c.oid, c.relname
UNION ALL
SELECT p.proname, pg_get_functiondef(p.oid), NULL FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace
ORDER BY 1
"""


def definitions(url: str) -> list[dict[str, object]]:
    return rows(url, DEFINITIONS)


def apply(url: str, found: dict[str, str]) -> None:
    engine = create_engine(engine_url(url))
    with engine.begin() as connection:
        apply_definitions(connection, found)
    engine.dispose()


def test_every_view_and_function_has_a_file_and_every_file_is_in_the_database(database_url: str) -> None:
    assert {row["name"] for row in definitions(database_url)} == current_definitions().keys()


def test_the_files_change_nothing_in_a_migrated_database(database_url: str) -> None:
    before = definitions(database_url)
    apply(database_url, current_definitions())
    assert definitions(database_url) == before


def test_a_file_that_says_something_else_is_told_from_the_database(database_url: str) -> None:
    before = definitions(database_url)
    text = current_definitions()["v_label_votes"].replace("('partly', true)", "('partly', false)")
    apply(database_url, {"v_label_votes": text})
    assert definitions(database_url) != before


def test_taking_the_last_revision_back_restores_every_definition(empty_database_url: str) -> None:
    upgrade(empty_database_url, LAST_UNDECLARED)
    before = definitions(empty_database_url)
    upgrade(empty_database_url)
    assert definitions(empty_database_url) != before
    downgrade(empty_database_url, LAST_UNDECLARED)
    assert definitions(empty_database_url) == before


def test_the_newest_copy_of_each_definition_is_its_current_text() -> None:
    kept = sorted(folder.name for folder in (VERSIONS / "sql").iterdir())
    newest = {name: text for number in kept for name, text in applied_definitions(number).items()}
    current = current_definitions()
    assert newest == {name: current[name] for name in newest}


def test_every_label_has_a_vote(database_url: str) -> None:
    found = {row["label"]: row["unsupported"] for row in rows(database_url, "SELECT * FROM v_label_votes")}
    assert found == {
        Label.SUPPORTED: False,
        Label.NOT_A_CLAIM: False,
        Label.PARTLY: True,
        Label.UNSUPPORTED: True,
        Label.CANT_TELL: None,
    }


def use_until(ended: Future[None], address: str, done: list[int]) -> None:
    """Read a view that is changed and write, again and again, as long as the migration runs; ``done`` has each time.

    Raises LockNotAvailable after a wait that is many times the migration's own, and still shorter than that for a query
    which stays in its way.
    """
    with psycopg.connect(address, autocommit=True, options="-c lock_timeout=20s") as connection:
        while not ended.done():
            (count,) = connection.execute("SELECT count(*) FROM v_interactions").fetchone() or (0,)
            connection.execute("INSERT INTO retention_periods (app, keep_days) VALUES (%s, 90)", [f"app-{len(done)}"])
            done.append(count)


def test_a_migration_lets_others_pass_while_a_long_query_is_in_its_way(empty_database_url: str) -> None:
    upgrade(empty_database_url, LAST_UNDECLARED)
    told: list[str] = []
    done: list[int] = []
    address = empty_database_url.replace("postgresql+psycopg://", "postgresql://")
    with ThreadPoolExecutor(2) as beside, psycopg.connect(address) as reader:
        reader.execute("SELECT count(*) FROM v_interactions")
        migration = beside.submit(upgrade, empty_database_url, on_wait=told.append)
        steady = beside.submit(use_until, migration, address, done)
        for times in (1, 2):
            wait_until(lambda: len(told) >= times, what="the migration to give way")  # noqa: B023 - called at once
            before = len(done)
            wait_until(lambda: len(done) > before + 1, what="others to pass")  # noqa: B023 - called at once
        assert not migration.done()
        reader.rollback()
        migration.result(timeout=90)
        steady.result(timeout=90)
    assert rows(empty_database_url, "SELECT max(revision) AS r FROM schema_revisions") == [{"r": head_revision()}]
    assert rows(empty_database_url, "SELECT count(*) AS n FROM retention_periods") == [{"n": len(done)}]


def test_a_migration_of_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(MigrationError):
        upgrade("mysql://nobody@nowhere/nothing")
