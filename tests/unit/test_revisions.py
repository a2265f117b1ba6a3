"""What the schema's revisions say of themselves, and that an expansion keeps to it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import migrations
from migrations.definitions import applied_definitions
from migrations.revisions import LAST_UNDECLARED, Kind, Revision, head_revision, needed_revision, revisions

PREVIOUS_RELEASE = Path(__file__).parents[1] / "previous_release.toml"
VERSIONS = Path(migrations.__file__).parent / "versions"
# Everything else that Alembic can do is said as SQL, which the forms below can read.
OPERATIONS = {"execute", "get_bind", "get_context"}
# What would take from workers of the release before what they use, and what would hold them up: a table that is read or
# written as a whole while nobody else may write to it.
NOT_IN_EXPANSIONS = re.compile(
    "|".join(
        (
            r"\bDROP\s+(TABLE|VIEW|MATERIALIZED|FUNCTION|PROCEDURE|INDEX|TRIGGER|TYPE|DOMAIN|SEQUENCE|SCHEMA)\b",
            # A check that goes, or is made wider, takes nothing away: what was allowed still is.
            r"\bALTER\s+TABLE\b[^;]*\bDROP\s+(?!NOT\s+NULL|DEFAULT|IDENTITY|EXPRESSION|CONSTRAINT\s+(IF\s+EXISTS\s+)?ck_)",
            r"\bRENAME\b",
            r"\bTRUNCATE\b",
            r"\bREVOKE\b[^;]*\bFROM\s+(?!PUBLIC\b)",
            r"\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+NOT\s+NULL|(SET\s+DATA\s+)?TYPE)\b",
            r"\bADD\s+COLUMN\b(?![^,;]*\bDEFAULT\b)[^,;]*\bNOT\s+NULL\b",
            r"\bADD\s+COLUMN\b[^,;]*\b(GENERATED|\w*SERIAL|RANDOM|CLOCK_TIMESTAMP|GEN_RANDOM_UUID|NEXTVAL)\b",
            r"\bADD\s+(CONSTRAINT\s+\w+\s+)?(CHECK|FOREIGN\s+KEY)\b(?![^;]*\bNOT\s+VALID\b)",
            r"\bADD\s+(CONSTRAINT\s+\w+\s+)?((UNIQUE|PRIMARY\s+KEY)(?!\s+USING\s+INDEX)|EXCLUDE)\b",
            r"\bCREATE\s+(UNIQUE\s+)?INDEX\s+(?!CONCURRENTLY\b)",
            r"\bREINDEX\b(?!\s+\w+\s+CONCURRENTLY\b)",
            r"\bLOCK\s+TABLE\b|\bCLUSTER\b|\bVACUUM\b|\bREFRESH\s+MATERIALIZED\b|\bSET\s+(UN)?LOGGED\b",
        )
    ),
    re.IGNORECASE,
)


# Nobody waits for a table that is not there yet.
NEW_TABLE = re.compile(r"\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
INDEX_OF = re.compile(r"\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?\w+\s+ON\s+(\w+)", re.IGNORECASE)


def declared(kind: Kind | None = None) -> list[Revision]:
    """The revisions that say what they are, or those of one kind."""
    return [one for one in revisions() if one.number > LAST_UNDECLARED and kind in {None, one.kind}]


def way_up(number: str) -> ast.Module:
    """A revision's source without its way back."""
    (source,) = VERSIONS.glob(f"{number}_*.py")
    tree = ast.parse(source.read_text("utf-8"))
    tree.body = [one for one in tree.body if not (isinstance(one, ast.FunctionDef) and one.name == "downgrade")]
    return tree


def statements(number: str) -> list[str]:
    """What a revision has of SQL on its way up, without comments."""
    tree = way_up(number)
    texts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    own = [text for text in texts if text != ast.get_docstring(tree, clean=False)]
    return [re.sub(r"--[^\n]*", "", text) for text in (*own, *applied_definitions(number).values())]


def test_each_revision_says_whether_it_expands_or_contracts() -> None:
    assert declared()
    assert all(one.kind is not None for one in declared())
    assert revisions()[-1].number == head_revision()


def test_what_a_release_expands_it_does_not_contract_itself() -> None:
    before = tomllib.loads(PREVIOUS_RELEASE.read_text("utf-8"))["revision"]
    assert before >= LAST_UNDECLARED
    assert all(one.completes is not None and one.completes <= before for one in declared(Kind.CONTRACT))


def test_a_worker_needs_the_newest_revision_that_added_something() -> None:
    expansions = [one.number for one in revisions() if one.kind is not Kind.CONTRACT]
    assert needed_revision() == expansions[-1]


@pytest.mark.parametrize("number", [one.number for one in declared(Kind.EXPAND)])
def test_an_expansion_takes_nothing_away_and_locks_no_table_for_long(number: str) -> None:
    texts = statements(number)
    new = {name for text in texts for name in NEW_TABLE.findall(text)}
    ours = [INDEX_OF.sub(lambda found: "" if found[1] in new else found[0], text) for text in texts]
    assert [found[0] for text in ours if (found := NOT_IN_EXPANSIONS.search(text))] == []


@pytest.mark.parametrize("number", [one.number for one in declared(Kind.EXPAND)])
def test_an_expansion_says_in_sql_what_it_does(number: str) -> None:
    used = {
        one.attr
        for one in ast.walk(way_up(number))
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "op"
    }
    assert used <= OPERATIONS


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ledger DROP COLUMN reason",
        "ALTER TABLE ledger DROP reason",
        "ALTER TABLE ledger DROP CONSTRAINT pk_ledger",
        "ALTER TABLE ledger RENAME TO books",
        "alter table ledger alter column reason set not null",
        "ALTER TABLE ledger ALTER reason TYPE integer USING 0",
        "ALTER TABLE ledger ADD COLUMN size integer NOT NULL",
        "ALTER TABLE ledger ADD COLUMN size bigserial",
        "ALTER TABLE ledger ADD CONSTRAINT ck_ledger_size CHECK (size > 0)",
        "ALTER TABLE ledger ADD CONSTRAINT uq_ledger_size UNIQUE (size)",
        "CREATE INDEX ix ON ledger (reason)",
        "DROP INDEX ix",
        "REVOKE SELECT ON ledger FROM gasp_worker",
        "LOCK TABLE ledger",
        "REINDEX TABLE ledger",
    ],
)
def test_what_an_expansion_must_not_say_is_found(statement: str) -> None:
    assert NOT_IN_EXPANSIONS.search(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ledger ADD COLUMN size integer",
        "ALTER TABLE ledger DROP CONSTRAINT IF EXISTS ck_ledger_reason",
        "ALTER TABLE ledger ADD COLUMN size integer NOT NULL DEFAULT 0",
        "ALTER TABLE ledger ALTER COLUMN reason DROP NOT NULL",
        "ALTER TABLE ledger ADD CONSTRAINT ck_ledger_size CHECK (size > 0) NOT VALID",
        "ALTER TABLE ledger ADD CONSTRAINT uq_ledger_size UNIQUE USING INDEX ix",
        "CREATE UNIQUE INDEX CONCURRENTLY ix ON ledger (reason)",
        "CREATE TABLE books (id bigint NOT NULL, CONSTRAINT pk_books PRIMARY KEY (id), CHECK (id > 0))",
        "REVOKE EXECUTE ON FUNCTION refresh_review_task(bigint) FROM PUBLIC",
    ],
)
def test_what_an_expansion_may_say_is_let_through(statement: str) -> None:
    assert not NOT_IN_EXPANSIONS.search(statement)
