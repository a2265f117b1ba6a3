"""The views and the worker's statements on a database of ten million sentences. `make bench-views`.

Fills a database with twelve weeks of three apps, eight sentences and five passages an interaction, then explains what
dashboards and analysts ask of each view and what a worker asks all the time. Fails if a table is read from end to end
where an index should have been used. Writes build/bench/views.json; takes a quarter of an hour and 8 GB of disk.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import quote

import psycopg
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sqlalchemy import Connection, Engine, text

from migrations.upgrade import upgrade
from worker.embedded.postgres import embedded_postgres
from worker.store.attribution_jobs import AttributionJobs
from worker.store.database import Database, Result
from worker.store.engine import open_engine
from worker.store.interactions import Interactions, stored_revisions
from worker.store.leases import reap
from worker.store.ledger import Ledger
from worker.store.rescore_jobs import RescoreJobs
from worker.store.retention import Retention
from worker.store.retention_periods import Period, RetentionPeriods
from worker.store.tables import attribution_jobs, rescore_jobs

OUTPUT = Path("build/bench/views.json")
WEEKS, SENTENCES, PORTIONS = 12, 8, 84
APP, SCORER, TOPIC = "support-bot", 1, "interactions"
# What PostgreSQL's manual says of solid-state disks; its default is that of a turning one.
SOLID_STATE = "-c random_page_cost=1.1"
EXPLAIN = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, FORMAT JSON)"
REPEATS = 5
# From its sixth run on a statement is prepared, and from its eleventh its plan may be one for any parameters.
RUNS_BEFORE = 11
BATCH, LIMIT, LEASE_S, MAX_ATTEMPTS = 256, 1_000, 900.0, 5
# Fewer rows may be read from end to end.
LARGE_ROWS = 20_000
EVERY_PLAN = {
    "log_min_duration": "0",
    "log_analyze": "on",
    "log_timing": "off",
    "log_buffers": "on",
    "log_format": "json",
    "log_level": "notice",
}

Work = Callable[[Database], object]
Plan = dict[str, Any]

_REGISTERED = """
SELECT ensure_weeks(:began, now());
INSERT INTO scorers (model, revision, dtype, template, method, label)
SELECT 'bench', 'r' || n, 'none', 'none', 'bench-1', 'bench-' || n FROM generate_series(1, 2) AS n;
INSERT INTO thresholds (scorer_id, version, flag_below, attribute_below, learned_from, activated_at, is_active)
VALUES (1, 1, 0.2, 0.4, 'seeded', now(), true);
INSERT INTO partition_offsets (topic, partition, next_offset, end_offset, owner, generation)
SELECT 'interactions', n, :interactions, :interactions + 100, 'worker-' || n, 7 FROM generate_series(0, 11) AS n;
INSERT INTO offset_gaps (topic, partition, incarnation, from_offset, to_offset, reason, owner, noticed_at)
SELECT 'interactions', n % 12, 0, n, n + 10, 'retention', 'worker', :began + n * interval '1 day'
FROM generate_series(1, 50) AS n;
INSERT INTO job_runs (job, scheduled_for, owner, started_at, finished_at, outcome)
SELECT job, tick, 'worker', tick, tick + interval '1 second', 'done'
FROM generate_series(CAST(:began AS timestamptz), :began + interval '84 days', interval '1 minute') AS tick,
    unnest(ARRAY['reap', 'weeks', 'retention']) AS job
WHERE job = 'reap' OR extract(hour FROM tick) * 60 + extract(minute FROM tick) = 180
"""

# The number of an interaction is its key and that of its verdict; its time follows from it. One in twenty-five answers
# has a sentence below the threshold, one in ten was attributed.
_PORTION = """
CREATE TEMPORARY TABLE portion ON COMMIT DROP AS
SELECT n, 'conversation-' || n AS interaction_id, :began + n * :step AS time,
    CASE WHEN n % 10 < 6 THEN 'support-bot' WHEN n % 10 < 9 THEN 'search' ELSE 'intranet' END AS app,
    (SELECT string_agg('Sentence ' || s || ' of answer ' || n || ' says what a passage says.', ' ')
        FROM generate_series(1, 8) AS s) AS answer
FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n;
INSERT INTO interactions (id, app, interaction_id, revision, is_current, content_hash, occurred_at, received_at,
    stored_at, question, answer, generator_model, metadata, repairs, adapter, source_topic, source_partition,
    source_offset)
OVERRIDING SYSTEM VALUE
SELECT n, app, interaction_id, 1, true, sha256(interaction_id::bytea), time, time, time + interval '2 seconds',
    'What does answer ' || n || ' say?', answer, 'some-model', '{"user": "u-1"}', '{}', 'native', 'interactions',
    n % 12, n / 12
FROM portion;
INSERT INTO passages (interaction_pk, position, stored_at, passage_id, text, score, metadata)
SELECT n, p, time + interval '2 seconds', 'doc-' || (n * 7 + p) % 10000,
    'Passage ' || p || ' of ' || n || ' says what a sentence of the answer says, and more than that.', 0.5, '{}'
FROM portion, generate_series(0, 4) AS p;
INSERT INTO verdicts (id, interaction_pk, scorer_id, threshold_id, method, lowest_score, context_tokens,
    context_tokens_cut, answer_tokens, answer_tokens_cut, n_sentences, n_scored, n_flagged, scored_at, attributed_at,
    context_windows)
OVERRIDING SYSTEM VALUE
SELECT n, n, 1, 1, CASE WHEN n % 10 = 0 THEN 'leave_one_out' ELSE 'two_pass' END, 0.1, 500, 0, 100, 0, 8, 8,
    CASE WHEN n % 4 = 0 THEN 1 ELSE 0 END, time + interval '2 seconds',
    CASE WHEN n % 10 = 0 THEN time + interval '1 minute' END, 1
FROM portion;
INSERT INTO sentences (verdict_id, sentence_index, scored_at, start_char, end_char, kind, n_tokens, score, gap,
    jsd_no_context, surprisal, flagged, supporting_chunk, supporting_passage, supporting_drop, context_window)
SELECT n, s, time + interval '2 seconds', s * 50, s * 50 + 50, 'prose', 12, (n * 8 + s) % 97 / 20.0,
    (n * 8 + s) % 97 / 20.0, 0.1, 1.5,
    n % 4 = 0 AND s = n / 4 % 8, CASE WHEN n % 10 = 0 THEN s % 5 END, CASE WHEN n % 10 = 0 THEN s % 5 END,
    CASE WHEN n % 10 = 0 THEN 0.5 END, 0
FROM portion, generate_series(0, 7) AS s;
INSERT INTO chunk_attributions (verdict_id, sentence_index, chunk_index, scored_at, passage_position, start_char,
    end_char, chunk_group, drop, jsd)
SELECT n, s, c, time + interval '2 seconds', c, 0, 50, c, 0.1, 0.1
FROM portion, generate_series(0, 7) AS s, generate_series(0, 4) AS c
WHERE n % 10 = 0;
INSERT INTO attribution_jobs (verdict_id, scorer_id, state, priority, attempts, created_at, finished_at)
SELECT n, 1, CASE n % 1000 WHEN 990 THEN 'waiting' WHEN 980 THEN 'failed' ELSE 'done' END, 0.1, 1, time,
    CASE WHEN n % 1000 <> 990 THEN time + interval '1 minute' END
FROM portion WHERE n % 10 = 0;
INSERT INTO rescore_jobs (interaction_pk, scorer_id, state, created_at, finished_at)
SELECT n, 2, CASE WHEN n % 20 = 0 THEN 'waiting' ELSE 'done' END, time, CASE WHEN n % 20 <> 0 THEN time END
FROM portion WHERE n % 10 = 0;
INSERT INTO ledger (topic, partition, incarnation, record_offset, outcome, reason, interaction_pk, value_bytes,
    broker_time, settled_at)
SELECT 'interactions', n % 12, 0, n / 12, CASE WHEN n % 500 = 0 THEN 'dead_lettered' ELSE 'scored' END,
    CASE WHEN n % 500 = 0 THEN 'invalid_json' END, CASE WHEN n % 500 <> 0 THEN n END, 1500, time,
    time + interval '2 seconds'
FROM portion
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a view. ``whole`` is for what cannot be answered without reading a whole table."""

    name: str
    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What PostgreSQL did: the median of several runs with a warm cache, in milliseconds.

    ``scans`` has each table with how it was read (its weeks together), ``whole`` the large tables that were read from
    end to end, and ``allowed`` whether they may be.
    """

    name: str
    rows: float
    median_ms: float
    scans: list[str]
    whole: list[str]
    allowed: bool


def main(
    rows: Annotated[int, typer.Option(min=8_000, help="Sentences.")] = 10_000_000,
    directory: Annotated[Path | None, typer.Option(help="Keeps the database for the next time.")] = None,
) -> None:
    """Fill, ask and report; the status is 1 if a table was read from end to end that should not have been."""
    with tempfile.TemporaryDirectory(prefix="gasp-views-", ignore_cleanup_errors=True) as own:
        answers = measure(directory or Path(own), rows // SENTENCES)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps([asdict(one) for one in answers], indent=2) + "\n", encoding="utf-8")
    Console(width=200).print(_table(answers))
    if any(one.whole and not one.allowed for one in answers):
        raise typer.Exit(1)


def measure(directory: Path, count: int) -> list[Answer]:
    """The answers on a database of so many interactions, which is filled if it is empty."""
    with embedded_postgres(directory, durable=False) as server, _opened(server) as engine:
        began = filled(engine, count)
        asked = [_ask(engine, question) for question in questions(began + timedelta(weeks=WEEKS), count)]
        return asked + [_watch(engine, name, work, allowed=whole) for name, work, whole in works(count)]


@contextmanager
def _opened(server: str) -> Iterator[Engine]:
    engine = open_engine(f"{server}&options={quote(SOLID_STATE)}", application_name="bench-views")
    try:
        yield engine
    finally:
        engine.dispose()


# --- the data ---


def filled(engine: Engine, count: int) -> datetime:
    """Migrate and fill the database, unless that was done before; gives the time of its first interaction."""
    upgrade(engine.url.render_as_string(hide_password=False))
    with engine.begin() as connection:
        first = connection.scalar(text("SELECT min(occurred_at) FROM interactions"))
    if isinstance(first, datetime):
        return first
    began = datetime.now(UTC) - timedelta(weeks=WEEKS)
    numbers = {"began": began, "interactions": count, "step": timedelta(weeks=WEEKS) / count}
    _execute(engine, _REGISTERED, numbers)
    for portion in track(range(PORTIONS), description=f"{count} interactions"):
        before, last = (count * (portion + more) // PORTIONS for more in (0, 1))
        _execute(engine, _PORTION, {**numbers, "first": before + 1, "last": last})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("SET statement_timeout = 0"))
        connection.execute(text("VACUUM ANALYZE"))
    return began


def _execute(engine: Engine, sql: str, parameters: Mapping[str, object]) -> None:
    """Run statements in one transaction, without looking at references: the rows are right by themselves."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in sql.split(";\n"):
            used = {name: value for name, value in parameters.items() if f":{name}" in statement}
            connection.execute(text(statement), used)


# --- what is asked of the views ---


def questions(latest: datetime, count: int) -> list[Question]:
    """What dashboards and analysts ask at the time of the last interaction."""
    app: dict[str, object] = {"app": APP}
    day: dict[str, object] = {"since": latest - timedelta(days=1)}
    shares = "date_trunc('day', time) AS day, sum(n_flagged) AS flagged, sum(n_scored) AS scored"
    asked = [
        question
        for view in ("v_sentences", "v_flagged_sentences", "v_interactions")
        for question in _of_exchanges(view, latest, count)
    ]
    return [
        *asked,
        Question("v_interactions: flagged per day", f"SELECT {shares} FROM v_interactions GROUP BY day", whole=True),
        Question("v_rates_5m: a day", "SELECT * FROM v_rates_5m WHERE time >= :since", day),
        Question(
            "v_rates_5m: a day of an app", "SELECT * FROM v_rates_5m WHERE app = :app AND time >= :since", day | app
        ),
        Question("v_rates_1d: all", "SELECT * FROM v_rates_1d", whole=True),
        Question("v_chunk_usage: a day", "SELECT * FROM v_chunk_usage WHERE time >= :since", day),
        Question("v_dead_letters: a day", "SELECT * FROM v_dead_letters WHERE time >= :since", day),
        Question("v_dead_letters: newest 50", "SELECT * FROM v_dead_letters ORDER BY time DESC LIMIT 50"),
        Question(
            "v_dead_letters: per day",
            "SELECT date_trunc('day', time), reason, count(*) FROM v_dead_letters GROUP BY 1, 2",
        ),
        Question(
            "v_outcomes: shares of a day",
            "SELECT outcome, reason, count(*) FROM v_outcomes WHERE time >= :since GROUP BY 1, 2",
            day,
        ),
        Question("v_ingest_lag: all", "SELECT * FROM v_ingest_lag"),
        Question("v_lost_offsets: all", "SELECT * FROM v_lost_offsets"),
        Question("v_job_runs: a day of a job", "SELECT * FROM v_job_runs WHERE job = 'reap' AND time >= :since", day),
        Question(
            "v_job_runs: newest of a job", "SELECT * FROM v_job_runs WHERE job = 'reap' ORDER BY time DESC LIMIT 1"
        ),
    ]


def _of_exchanges(view: str, latest: datetime, count: int) -> list[Question]:
    app: dict[str, object] = {"app": APP}
    one: dict[str, object] = {"one": f"conversation-{count // 2}"}
    hour: dict[str, object] = {"since": latest - timedelta(hours=1)}
    day: dict[str, object] = {"since": latest - timedelta(days=1)}
    rows = f"SELECT * FROM {view}"
    return [
        Question(f"{view}: an hour of an app", f"{rows} WHERE app = :app AND time >= :since", app | hour),
        Question(f"{view}: an hour", f"{rows} WHERE time >= :since", hour),
        Question(f"{view}: a day of an app", f"{rows} WHERE app = :app AND time >= :since", app | day),
        Question(f"{view}: a day", f"{rows} WHERE time >= :since", day),
        Question(f"{view}: one of an app", f"{rows} WHERE app = :app AND interaction_id = :one", app | one),
        Question(f"{view}: one of any app", f"{rows} WHERE interaction_id = :one", one),
        Question(f"{view}: newest 50 of an app", f"{rows} WHERE app = :app ORDER BY time DESC LIMIT 50", app),
        Question(f"{view}: newest 50", f"{rows} ORDER BY time DESC LIMIT 50"),
        Question(
            f"{view}: per hour of a day",
            f"SELECT date_trunc('hour', time), app, count(*) FROM {view} WHERE time >= :since GROUP BY 1, 2",
            day,
        ),
        Question(
            f"{view}: per day", f"SELECT date_trunc('day', time), app, count(*) FROM {view} GROUP BY 1, 2", whole=True
        ),
    ]


def _ask(engine: Engine, question: Question) -> Answer:
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        asked = text(f"{EXPLAIN} {question.sql}")
        plans: list[Plan] = [connection.scalar(asked, dict(question.parameters))[0] for _ in range(1 + REPEATS)]
    return _answer(
        question.name,
        plans[-1:],
        statistics.median(plan["Planning Time"] + plan["Execution Time"] for plan in plans[1:]),
        allowed=question.whole,
    )


# --- what a worker asks ---


def works(count: int) -> list[tuple[str, Work, bool]]:
    """What a worker asks all the time, by name, and whether it may read a whole table."""
    seen = [(APP, f"conversation-{number}", "00" * 32) for number in range(count - BATCH, count)]
    keys = [(app, one, bytes.fromhex(content)) for app, one, content in seen]
    lease: dict[str, Any] = {"lease_s": LEASE_S, "max_attempts": MAX_ATTEMPTS}
    long_ago = datetime.now(UTC) - timedelta(weeks=WEEKS - 1)
    return [
        ("known", lambda database: Interactions(database).known(SCORER, seen), False),
        (
            "stored revisions",
            lambda one: one.write(lambda connection: stored_revisions(connection, SCORER, keys)),
            False,
        ),
        ("claim attribution", lambda database: AttributionJobs(database).claim("bench", SCORER, **lease), False),
        ("claim re-scoring", lambda database: RescoreJobs(database).claim("bench", 2, limit=16, **lease), False),
        ("reap attribution", lambda one: one.write(lambda connection: reap(connection, attribution_jobs)), False),
        ("reap re-scoring", lambda one: one.write(lambda connection: reap(connection, rescore_jobs)), False),
        ("open backlog of attribution", lambda database: AttributionJobs(database).open_backlog(), False),
        # They count the jobs that are done, too, which are in no index.
        ("backlog of attribution", lambda database: AttributionJobs(database).backlog(), True),
        ("backlog of re-scoring", lambda database: RescoreJobs(database).backlog(), True),
        ("outcome counts", lambda database: Ledger(database).counts(), True),
        ("retention: apps", lambda database: Interactions(database).apps(), False),
        ("retention: 1,000 interactions", _deleted, False),
        (
            "retention: 1,000 of the ledger",
            lambda database: Retention(database).delete_ledger(TOPIC, 0, long_ago, LIMIT),
            False,
        ),
    ]


def _deleted(database: Database) -> int:
    RetentionPeriods(database).set(Period(None, 1))
    return Retention(database).delete_interactions(APP, LIMIT)


class OneConnection(Database):
    """A database whose every piece of work goes through one connection, which its owner takes back."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def read(self, *, one_moment: bool = False) -> Iterator[Connection]:  # noqa: ARG002 - one transaction has them all
        """The connection."""
        yield self._connection

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """On the connection, once."""
        return work(self._connection)


def _watch(engine: Engine, name: str, work: Work, *, allowed: bool) -> Answer:
    """Do the work over and over, each time taken back; PostgreSQL tells every plan that it used."""
    runs: list[list[tuple[float, Plan]]] = []
    with engine.connect() as connection:
        driver = cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)
        connection.execute(text("LOAD 'auto_explain'"))
        for setting, value in EVERY_PLAN.items():
            connection.execute(text(f"SET auto_explain.{setting} = '{value}'"))
        connection.commit()
        driver.add_notice_handler(lambda notice: runs[-1].append(_told(notice.message_primary or "")))
        for _ in range(RUNS_BEFORE + REPEATS):
            runs.append([])
            work(OneConnection(connection))
            connection.rollback()
        connection.invalidate()
    times = [sum(duration_ms for duration_ms, _ in run) for run in runs[RUNS_BEFORE:]]
    return _answer(name, [plan for _, plan in runs[-1]], statistics.median(times), allowed=allowed)


def _told(message: str) -> tuple[float, Plan]:
    """Milliseconds and plan out of auto_explain's ``duration: 0.123 ms  plan: {...}``."""
    duration, _, plan = message.partition("plan:")
    return float(duration.split()[1]), json.loads(plan)


# --- what was done ---


def _answer(name: str, plans: Sequence[Plan], median_ms: float, *, allowed: bool) -> Answer:
    nodes = [node for plan in plans for node in _nodes(plan["Plan"]) if node.get("Actual Loops")]
    scans = [node for node in nodes if "Relation Name" in node and node["Node Type"].endswith("Scan")]
    read = Counter(f"{_table_of(node)} ({_way(node)})" for node in scans)
    return Answer(
        name=name,
        rows=plans[-1]["Plan"]["Actual Rows"],
        median_ms=median_ms,
        scans=sorted(read),
        whole=sorted({_table_of(node) for node in scans if _is_whole(node)}),
        allowed=allowed,
    )


def _nodes(node: Plan) -> Iterator[Plan]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _table_of(node: Plan) -> str:
    """The table's name; that of a week without the week."""
    return re.sub(r"_\d{4}w\d\d$", "", node["Relation Name"])


def _way(node: Plan) -> str:
    return {"Seq Scan": "whole", "Index Only Scan": "index only", "Index Scan": "index"}.get(
        node["Node Type"], "bitmap"
    )


def _is_whole(node: Plan) -> bool:
    """Whether a large table, or a large week of one, was read from end to end."""
    read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    by_position = any(name in node for name in ("Index Cond", "Recheck Cond"))
    return bool(read > LARGE_ROWS and not by_position)


def _table(answers: Sequence[Answer]) -> Table:
    table = Table("query", title="milliseconds: median of five, warm")
    table.add_column("rows", justify="right")
    table.add_column("ms", justify="right")
    table.add_column("reads")
    table.add_column("from end to end")
    for one in answers:
        whole = "" if not one.whole else ", ".join(one.whole) + ("" if one.allowed else " !")
        table.add_row(one.name, f"{one.rows:.0f}", f"{one.median_ms:.2f}", ", ".join(one.scans), whole)
    return table


if __name__ == "__main__":
    typer.run(main)
