from __future__ import annotations

import re
import subprocess
import sys
from enum import StrEnum
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from gasp_core.grounding import AnswerSkip, Method, SentenceSkip, UnitKind
from migrations.database_url import engine_url
from migrations.errors import MigrationError
from migrations.records import HEAD_TABLE, OLD_HEAD_TABLE
from migrations.revisions import head_revision, revisions
from migrations.upgrade import _locked, downgrade, upgrade
from tests.bars import FULL, bar
from tests.integration.store_examples import advance, attributed, prepared, rows, scored, selected
from worker.embedded.databases import drop_database
from worker.rules.allowance import UsualDay
from worker.rules.claims import LossReason
from worker.rules.opinion import OpinionLabel
from worker.rules.policy import DEFAULT_POLICY, Objective
from worker.rules.settlement import Outcome
from worker.store.errors import StoreNotReady
from worker.store.schema import require_usable_schema
from worker.store.store import Store, open_store
from worker.store.tables import METADATA

# Alembic's own books stay when everything else goes.
_BOOKS = (HEAD_TABLE, OLD_HEAD_TABLE)
_OBJECTS = f"""
SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'public' AND relname NOT IN {(*_BOOKS, *(f"{book}_pkc" for book in _BOOKS))}
"""
_FLOATS = """
SELECT relname AS table_name, attname AS column_name FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition
    AND atttypid IN ('float8'::regtype, 'float4'::regtype)
ORDER BY 1, 2
"""


def test_the_migrated_database_has_the_tables_that_the_store_expects(database_url: str) -> None:
    engine = create_engine(engine_url(database_url), poolclass=NullPool)
    with engine.connect() as connection:
        weeks = {row["relname"] for row in rows(database_url, "SELECT relname FROM pg_class WHERE relispartition")}
        options = {
            "compare_type": True,
            "compare_server_default": True,
            "include_name": lambda name, kind, _: kind != "table" or name not in {*weeks, *_BOOKS},
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []


def test_upgrading_twice_changes_nothing_and_ends_at_the_newest_revision(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    before = rows(empty_database_url, _OBJECTS)
    upgrade(empty_database_url)
    store = open_store(empty_database_url, application_name="gasp-test")
    assert store.server.schema().revision == head_revision() is not None
    assert rows(empty_database_url, _OBJECTS) == before
    store.close()


@pytest.mark.parametrize("_", range(bar(20, 1)))
def test_three_processes_can_migrate_an_empty_database_at_once(empty_database_url: str, _: int) -> None:
    program = "import sys; from migrations.upgrade import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-W", "error", "-c", program, empty_database_url]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=120)[1] for process in started]
    assert said == ["", "", ""]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert all(len(rows(empty_database_url, f"SELECT * FROM {book}")) == 1 for book in _BOOKS)


def test_a_downgrade_to_base_leaves_nothing_and_can_be_taken_back(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    downgrade(empty_database_url, "base")
    assert rows(empty_database_url, _OBJECTS) == []
    upgrade(empty_database_url)
    assert rows(empty_database_url, _OBJECTS) != []


# What a database of the first revision holds: rows in every table, an interaction of last month among them.
_DATA = """
INSERT INTO scorers (model, revision, dtype, template, method, label) VALUES ('m', 'r', 'd', 't', 'x', 'l');
INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from, activated_at, is_active)
VALUES (NULL, 1, 1, 0.1, 0.6, 'seeded', now(), true);
INSERT INTO interactions (app, interaction_id, revision, is_current, content_hash, stored_at, question, answer,
    metadata, repairs, adapter, source_topic, source_partition, source_offset)
SELECT 'a', id, 1, true, decode(repeat('00', 32), 'hex'), now() - age, 'q', 'It is.', '{"k": 1}', '{bom}', 'native',
    't', 0, 0
FROM (VALUES ('scored', interval '30 days'), ('skipped', interval '0')) AS logged (id, age);
INSERT INTO passages (interaction_pk, position, passage_id, text, score, metadata)
SELECT id, position, 'p' || position, 'text', 0.5, '{}' FROM interactions, generate_series(0, 1) AS position;
INSERT INTO verdicts (interaction_pk, scorer_id, threshold_id, method, skip_reason, lowest_gap, context_tokens,
    context_tokens_cut, answer_tokens, answer_tokens_cut, n_sentences, n_scored, n_flagged, scored_at, attributed_at)
VALUES (1, 1, 1, 'leave_one_out', NULL, 0.5, 9, 0, 9, 0, 1, 1, 0, now() - interval '30 days', now()),
    (2, 1, 1, 'two_pass', 'refusal', NULL, 9, 0, 9, 0, 1, 0, 0, now(), NULL);
INSERT INTO sentences (verdict_id, sentence_index, start_char, end_char, kind, n_tokens, gap, jsd_no_context,
    surprisal, skip_reason, flagged, supporting_chunk, supporting_passage, supporting_drop)
VALUES (1, 0, 0, 6, 'prose', 3, 0.5, 0.1, 1.0, NULL, false, 1, 1, 0.3),
    (2, 0, 0, 6, 'prose', 3, NULL, NULL, NULL, 'refusal', NULL, NULL, NULL, NULL);
INSERT INTO chunk_attributions (verdict_id, sentence_index, chunk_index, passage_position, start_char, end_char,
    chunk_group, drop, jsd)
VALUES (1, 0, 0, 0, 0, 4, 0, -0.1, 0.1), (1, 0, 1, 1, 0, 4, 1, 0.3, 0.2);
INSERT INTO attribution_jobs (verdict_id, state, priority, finished_at) VALUES (1, 'done', 0.5, now());
INSERT INTO ledger (topic, partition, record_offset, outcome, reason, interaction_pk, value_bytes)
VALUES ('t', 0, 0, 'scored', NULL, 1, 9), ('t', 0, 1, 'dead_lettered', 'null_value', NULL, 0);
INSERT INTO partition_offsets (topic, partition, next_offset, end_offset, generation, owner)
VALUES ('t', 0, 2, 2, 3, 'worker-1')
"""


# Of tables and views, by name.
Contents = dict[str, list[dict[str, Any]]]

_RENAMED = {"lowest_gap": "lowest_score"}
_EARLIER = [one.number for one in revisions()[:-1]]


def test_a_database_keeps_its_rows_on_the_way_up_and_down_over_every_revision(empty_database_url: str) -> None:
    _fill_first_revision(empty_database_url)
    before = {}
    for revision in _EARLIER:
        upgrade(empty_database_url, revision)
        before[revision] = _contents(empty_database_url)
    upgrade(empty_database_url)
    after = _contents(empty_database_url)
    for contents in before.values():
        _assert_kept(contents, after)
    for revision in reversed(_EARLIER):
        downgrade(empty_database_url, revision)
        assert _contents(empty_database_url) == before[revision]


@pytest.mark.parametrize("revision", _EARLIER if FULL else (_EARLIER[0], _EARLIER[-1]))
def test_a_database_of_any_earlier_revision_keeps_its_rows_on_the_way_up_and_down(
    empty_database_url: str, revision: str
) -> None:
    _fill_first_revision(empty_database_url)
    upgrade(empty_database_url, revision)
    before = _contents(empty_database_url)
    upgrade(empty_database_url)
    _assert_kept(before, _contents(empty_database_url))
    downgrade(empty_database_url, revision)
    assert _contents(empty_database_url) == before


def _fill_first_revision(url: str) -> None:
    upgrade(url, "0001")
    with create_engine(engine_url(url), poolclass=NullPool).begin() as connection:
        connection.exec_driver_sql(_DATA)


def _assert_kept(before: Contents, after: Contents) -> None:
    """Every row of an earlier revision is there at the newest one, with all that it said."""
    assert {name: len(found) for name, found in after.items()} == {name: len(found) for name, found in before.items()}
    for name, found in before.items():
        for old, new in zip(found, after[name], strict=True):
            assert {key: new[_RENAMED.get(key, key)] for key in old} == _now_named(old)


def _now_named(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the name that the version for every app has since 0008."""
    version = row.get("threshold_version")
    return row | {"threshold_version": version.replace("default/", "*/")} if version else row


def _contents(url: str) -> Contents:
    """The rows of every table that the first revision has, and of the views on them."""
    tables = ("scorers", "thresholds", "interactions", "passages", "verdicts", "sentences", "chunk_attributions")
    names = (*tables, "attribution_jobs", "ledger", "partition_offsets", "v_sentences", "v_interactions")
    return {
        name: sorted(rows(url, f"SELECT * FROM {name}"), key=lambda row: str(sorted(row.items()))) for name in names
    }


def test_verdicts_from_before_windows_were_given_on_one_window_or_on_none(empty_database_url: str) -> None:
    _fill_first_revision(empty_database_url)
    upgrade(empty_database_url)
    answers = rows(empty_database_url, "SELECT context_windows FROM v_interactions ORDER BY interaction_id")
    assert [row["context_windows"] for row in answers] == [1, 0]
    windows = rows(empty_database_url, "SELECT context_window FROM v_sentences ORDER BY interaction_id")
    assert [row["context_window"] for row in windows] == [0, None]


def test_verdicts_from_before_there_was_a_choice_were_given_on_the_gap(empty_database_url: str) -> None:
    _fill_first_revision(empty_database_url)
    upgrade(empty_database_url)
    found = rows(empty_database_url, "SELECT score, gap FROM v_sentences ORDER BY interaction_id")
    assert [(row["score"], row["gap"]) for row in found] == [(0.5, 0.5), (None, None)]


def test_a_migration_runs_with_a_lock_timeout_and_holds_the_lock_between_transactions(empty_database_url: str) -> None:
    engine = create_engine(engine_url(empty_database_url), poolclass=NullPool)
    with engine.connect() as connection, _locked(connection):
        assert connection.scalar(text("SHOW lock_timeout")) == "1s"
        assert connection.scalar(text("SHOW statement_timeout")) == "5min"
        connection.rollback()
        held = rows(empty_database_url, "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted")
        assert held[0]["n"] >= 1


def test_a_database_that_cannot_be_reached_is_reported_without_the_password() -> None:
    with pytest.raises(MigrationError) as raised:
        upgrade("postgresql://somebody:s3cret@127.0.0.1:1/nowhere")
    assert "s3cret" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


def test_a_database_that_is_not_in_utf8_is_refused_with_what_to_do(postgres_server: str) -> None:
    name = "in_sql_ascii"
    create = f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with psycopg.connect(postgres_server.replace("+psycopg", "", 1), autocommit=True) as connection:
        connection.execute(create)
    url = postgres_server.replace("/postgres?", f"/{name}?")
    with pytest.raises(MigrationError, match=r"SQL_ASCII.*ENCODING 'UTF8'.*GASP_DATABASE_URL"):
        upgrade(url)
    with open_store(url, application_name="gasp-test") as store, pytest.raises(StoreNotReady, match="ENCODING 'UTF8'"):
        require_usable_schema(store.server)
    drop_database(postgres_server, name)


def test_an_unknown_revision_is_a_migration_error(empty_database_url: str) -> None:
    with pytest.raises(MigrationError, match="nonsense"):
        upgrade(empty_database_url, "nonsense")


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "nonsense s3cret", "postgresql://u:s3cret@h:port/d"])
def test_a_url_that_is_none_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(MigrationError, match="database URL") as raised:
        upgrade(url)
    assert "s3cret" not in str(raised.value)


def test_every_time_column_has_a_time_zone(database_url: str) -> None:
    sql = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND data_type IN ('timestamp without time zone', 'date', 'time without time zone')
    """
    assert rows(database_url, sql) == []


def test_every_constraint_is_named_by_its_kind_and_table(database_url: str) -> None:
    sql = """
    SELECT conname, relname, contype FROM pg_constraint JOIN pg_class c ON c.oid = conrelid
    JOIN pg_namespace n ON n.oid = relnamespace
    WHERE nspname = 'public' AND contype <> 'n' AND relname <> ALL(%(books)s) AND NOT relispartition
    """
    prefixes = {"p": "pk", "u": "uq", "f": "fk", "c": "ck"}
    for row in rows(database_url, sql, books=list(_BOOKS)):
        assert row["conname"].startswith(f"{prefixes[row['contype']]}_{row['relname']}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_no_floating_point_column_takes_a_number_that_is_not_finite(
    store: Store, database_url: str, number: str
) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [selected(scored(0, "a", [0.01], threshold))], [advance(0, 1)])
    job = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    assert job is not None
    assert store.attribution_jobs.finish(job, attributed([0.01], [[0.3, -0.2]]))
    assert store.opinion_jobs.queue(scorer_id, "another", daily=1, limit=1) == 1
    store.policies.set(DEFAULT_POLICY)
    store.sampling.set_usual_days({("shop", scorer_id): UsualDay(1.0, 1.0, 1.0)})
    columns = [(row["table_name"], row["column_name"]) for row in rows(database_url, _FLOATS)]
    assert len(columns) == 29
    for table, column in columns:
        with pytest.raises(psycopg.errors.CheckViolation) as raised:
            rows(database_url, f"UPDATE {table} SET {column} = '{number}'")
        assert raised.value.diag.constraint_name in {f"ck_{table}_{column}_finite", f"ck_{table}_{column}"}


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ("ck_verdicts_method", Method),
        ("ck_verdicts_skip_reason", AnswerSkip),
        ("ck_sentences_kind", UnitKind),
        ("ck_sentences_skip_reason", SentenceSkip),
        ("ck_ledger_outcome", Outcome),
        ("ck_offset_gaps_reason", LossReason),
        ("ck_review_policies_objective", Objective),
        ("ck_second_opinions_label", OpinionLabel),
    ],
)
def test_the_words_that_the_database_takes_are_the_words_of_the_code(
    database_url: str, constraint: str, words: type[StrEnum]
) -> None:
    sql = "SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = %(name)s"
    definition = rows(database_url, sql, name=constraint)[0]["definition"]
    assert set(re.findall(r"'(\w+)'", definition)) == set(words)
