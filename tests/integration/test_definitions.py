"""The files of views and functions against a migrated database, and what revisions say of themselves."""

from __future__ import annotations

import ast
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine

import migrations
from migrations.database_url import engine_url
from migrations.definitions import applied_definitions, apply_definitions, current_definitions
from migrations.errors import MigrationError
from migrations.revisions import LAST_UNDECLARED, Kind, Revision, head_revision, needed_revision, revisions
from migrations.upgrade import downgrade, upgrade
from schemas.review_label import Label
from tests.integration.store_examples import rows
from tests.waiting import wait_until

PREVIOUS_RELEASE = Path(__file__).parents[1] / "previous_release.toml"
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
# What would hold up workers of the release before, or take from them what they use.
NOT_IN_EXPANSIONS = re.compile(
    r"\bDROP\s+(TABLE|VIEW|FUNCTION|COLUMN|CONSTRAINT)|\bRENAME\b|\bALTER\s+COLUMN\s+\w+\s+(SET\s+NOT\s+NULL|TYPE)\b"
    r"|\bLOCK\s+TABLE|\bTRUNCATE\b|\bCREATE\s+(UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY)",
    re.IGNORECASE,
)


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


def declared() -> list[Revision]:
    return [one for one in revisions() if one.number > LAST_UNDECLARED]


def test_each_revision_says_whether_it_expands_or_contracts() -> None:
    assert declared()
    assert all(one.kind is not None for one in declared())
    assert revisions()[-1].number == head_revision()


def test_what_a_release_expands_it_does_not_contract_itself() -> None:
    before = tomllib.loads(PREVIOUS_RELEASE.read_text("utf-8"))["revision"]
    assert before >= LAST_UNDECLARED
    assert all(one.completes is not None and one.completes <= before for one in declared() if one.kind is Kind.CONTRACT)


def test_a_worker_needs_the_newest_revision_that_added_something() -> None:
    expansions = [one.number for one in revisions() if one.kind is not Kind.CONTRACT]
    assert needed_revision() == expansions[-1]


@pytest.mark.parametrize("number", [one.number for one in declared() if one.kind is Kind.EXPAND])
def test_an_expansion_takes_nothing_away_and_locks_no_table_for_long(number: str) -> None:
    (source,) = VERSIONS.glob(f"{number}_*.py")
    tree = ast.parse(source.read_text("utf-8"))
    downward = next(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == "downgrade")
    tree.body.remove(downward)
    statements = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for text in (*statements[1:], *applied_definitions(number).values()):
        code = re.sub(r"--[^\n]*", "", text)
        assert not NOT_IN_EXPANSIONS.search(code), code


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ledger DROP COLUMN reason",
        "alter table ledger alter column reason set not null",
        "CREATE INDEX ix ON ledger (reason)",
        "ALTER TABLE ledger RENAME TO books",
    ],
)
def test_what_an_expansion_must_not_say_is_found(statement: str) -> None:
    assert NOT_IN_EXPANSIONS.search(statement)


def test_a_migration_lets_others_pass_while_a_long_query_is_in_its_way(empty_database_url: str) -> None:
    upgrade(empty_database_url, LAST_UNDECLARED)
    told: list[str] = []
    address = empty_database_url.replace("postgresql+psycopg://", "postgresql://")
    with ThreadPoolExecutor(1) as beside, psycopg.connect(address) as reader:
        reader.execute("SELECT count(*) FROM v_interactions")
        migration = beside.submit(upgrade, empty_database_url, on_wait=told.append)
        wait_until(lambda: told, what="the migration to give way")
        # Far longer than the migration waits for its lock, and far shorter than the query in its way lasts.
        with psycopg.connect(address, options="-c lock_timeout=20s") as other:
            other.execute("SELECT count(*) FROM v_interactions")
            other.execute("INSERT INTO retention_periods (app, keep_days) VALUES ('shop', 90)")
        assert not migration.done()
        reader.rollback()
        migration.result(timeout=90)
    assert rows(empty_database_url, "SELECT max(revision) AS r FROM schema_revisions") == [{"r": head_revision()}]


def test_a_migration_of_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(MigrationError):
        upgrade("mysql://nobody@nowhere/nothing")
