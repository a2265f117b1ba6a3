"""migrations/roles.sql: what each role can do, and what it cannot."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy.engine import make_url

from migrations.errors import MigrationError
from migrations.upgrade import upgrade
from schemas.traces.piece import Piece, TraceKey
from tests.bars import bar
from tests.databases import copy_database, drop_copy
from tests.integration.label_examples import label
from tests.integration.store_examples import (
    OCCURRED_AT,
    OTHER_IDENTITY,
    TOPIC,
    advance,
    attributed,
    claim,
    dead_letter,
    grounding,
    prepared,
    record,
    rows,
    scored,
    scores_of,
    selected,
)
from tests.integration.trace_examples import collected
from tests.unit.traces.steps import rag, step
from worker.embedded.databases import create_database, drop_database, psql_command
from worker.embedded.programs import run
from worker.jobs.retention import Remover
from worker.jobs.traffic_bounds import TrafficFollower
from worker.page.reviewer import Reviewer, Role
from worker.page.saying import TOOL, label_of, withdrawal_of
from worker.review.usual_day import renew_usual_days
from worker.rules.opinion import Opinion, OpinionLabel
from worker.rules.pieces import ClosedBy, TracePolicy, kept_pieces
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.settlement import Origin, Outcome, Settlement
from worker.rules.verdict import judge
from worker.store.calibration_runs import CalibrationRun
from worker.store.errors import StoreNotReady
from worker.store.outbox import LeaseRequest, TopicEnds
from worker.store.rescore_jobs import History
from worker.store.retention_periods import Period
from worker.store.revisions import Judged
from worker.store.schema import require_usable_schema
from worker.store.store import Store, open_store
from worker.store.threshold_versions import Proposal
from worker.store.traces import Closing

ROLES_FILE = Path(__file__).parents[2] / "migrations" / "roles.sql"
# A login for each role, and one that has none.
LOGINS = {
    "gasp_worker": "worker_login",
    "gasp_reviewer": "reviewer_login",
    "gasp_dashboard": "dashboard_login",
    "gasp_page": "page_login",
}
STRANGER = "stranger_login"
GAPS = [0.01, 0.9]
ENTRY = "review_label_entry"
HEARD = ({"ada": "supported", "bob": "unsupported"}, {"ada": "partly", "bob": "partly"})

# Not the weeks: they are reached through their tables.
RELATIONS = """
    SELECT relname, relkind = 'v' AS is_view FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND NOT relispartition
        AND relname <> 'schema_head' -- Alembic's own
"""
# What a worker of the release before needs and one of this no longer does: it goes with the next release.
FOR_THE_RELEASE_BEFORE = {
    "SELECT ON alembic_version",
    "SELECT ON v_review_labels",
    "EXECUTE ON FUNCTION settle_review_task(bigint)",
}
GRANTED = """
    SELECT privilege_type || ' ON ' || relname AS granted
    FROM pg_class, aclexplode(relacl) WHERE grantee = 'gasp_worker'::regrole
    UNION SELECT privilege_type || ' (' || attname || ') ON ' || attrelid::regclass
    FROM pg_attribute, aclexplode(attacl) WHERE grantee = 'gasp_worker'::regrole
    UNION SELECT privilege_type || ' ON FUNCTION ' || pg_proc.oid::regprocedure
    FROM pg_proc, aclexplode(proacl) WHERE grantee = 'gasp_worker'::regrole
"""

NOBODY_MAY = (
    "CREATE TABLE mine (id int)",
    "CREATE TEMPORARY TABLE mine (id int)",
    "CREATE SCHEMA mine",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE ROLE another",
    "ALTER TABLE ledger ADD COLUMN more int",
    "DROP TABLE ledger",
    "DROP VIEW v_sentences",
    "TRUNCATE ledger",
    "UPDATE ledger SET outcome = 'scored'",
    "UPDATE thresholds SET flag_below = 0",
    "DELETE FROM thresholds",
    "DELETE FROM scorers",
    "UPDATE alembic_version SET version_num = '0001'",
    "UPDATE schema_head SET version_num = '0001'",
    "UPDATE schema_revisions SET completes = '0001'",
    "INSERT INTO retention_periods (keep_days) VALUES (1)",
    "UPDATE review_policies SET daily_sentences = 0",
    "SET ROLE postgres",
    "GRANT gasp_worker TO stranger_login",
    "ALTER ROLE stranger_login SUPERUSER",
    "SELECT * FROM pg_authid",
    "COPY (SELECT 1) TO PROGRAM 'true'",
)
WORKER_MAY_NOT = (
    *NOBODY_MAY,
    "SET ROLE gasp_dashboard",
    "UPDATE interactions SET answer = ''",
    "UPDATE verdicts SET lowest_score = 0",
    "UPDATE sentences SET gap = 0, flagged = false",
    "UPDATE calibration_runs SET outcome = 'refused'",
    "DELETE FROM threshold_activations",
    "DELETE FROM verdicts",
    "DELETE FROM passages",
    "DELETE FROM partition_offsets",
    "DELETE FROM retention_periods",
    "DELETE FROM review_policies",
    "DELETE FROM review_tasks",
    "UPDATE review_tasks SET probability = 1",
    "UPDATE review_sentences SET probability = 1, score = 0",
    "UPDATE review_labels SET label = 'supported'",
    "DELETE FROM review_labels",
    f"INSERT INTO {ENTRY} (sentence_index) VALUES (0)",
    "SELECT * FROM v_sentences",
    "ALTER FUNCTION drop_weeks OWNER TO worker_login",
)
PAGE_MAY_NOT = (
    *NOBODY_MAY,
    "SET ROLE gasp_worker",
    "UPDATE interactions SET answer = ''",
    "DELETE FROM interactions",
    "UPDATE review_tasks SET state = 'labelled'",
    "UPDATE review_labels SET label = 'supported'",
    "DELETE FROM review_labels",
    "SELECT * FROM ledger",
    "SELECT * FROM outbox",
    f"INSERT INTO {ENTRY} (sentence_index) VALUES (0)",
)
READERS_MAY_NOT = (
    *NOBODY_MAY,
    "SET ROLE gasp_worker",
    "SELECT * FROM interactions",
    "SELECT answer FROM interactions",
    "SELECT * FROM passages",
    "SELECT * FROM thresholds",
    "SELECT * FROM alembic_version",
    "SELECT * FROM schema_revisions",
    "INSERT INTO scorers (model, revision, dtype, template, method, label) VALUES ('', '', '', '', '', '')",
    "INSERT INTO v_job_runs (job) VALUES ('')",
    "UPDATE v_job_runs SET detail = ''",
    "DELETE FROM v_lost_offsets",
    "DELETE FROM interactions",
    "SELECT drop_weeks('passages', now())",
    "SELECT ensure_weeks(now(), now())",
    "INSERT INTO review_labels (tool) VALUES ('')",
    "DELETE FROM review_labels",
    "UPDATE reviewer_logins SET reviewer = 'ada'",
    f"SELECT * FROM {ENTRY}",
    f"UPDATE {ENTRY} SET label = 'supported'",
    f"DELETE FROM {ENTRY}",
    "SELECT refresh_review_task(1)",
    "SELECT settle_review_task(1)",
    "UPDATE review_tasks SET state = 'labelled'",
)


@pytest.fixture(scope="module")
def roles(postgres_server: str, template_database: str) -> Iterator[str]:
    """The owner's URL of a migrated database on which the file was run, before and after the logins got their roles."""
    url = create_database(postgres_server, "with_roles", template=template_database)
    apply_roles(url)
    rows(url, f"CREATE ROLE {STRANGER} LOGIN")
    for role, login in LOGINS.items():
        rows(url, f"CREATE ROLE {login} LOGIN IN ROLE {role}")
    apply_roles(url)
    yield url
    drop_database(postgres_server, "with_roles")


@pytest.fixture
def owner(postgres_server: str, roles: str) -> Iterator[str]:
    """The owner's URL of a copy of that database."""
    yield copy_database(postgres_server, "copy_with_roles", database_of(roles))
    drop_copy(postgres_server, "copy_with_roles")


def apply_roles(url: str, path: Path = ROLES_FILE) -> str:
    """Run the file as the runbook does; gives what psql says."""
    done = run([*psql_command(url), "--set=ON_ERROR_STOP=1", "--quiet", f"--file={path}"])
    assert done.returncode == 0, done.stderr
    return done.stderr


def database_of(url: str) -> str:
    return make_url(url).database or ""


def as_login(url: str, login: str) -> str:
    return make_url(url).set(drivername="postgresql", username=login).render_as_string(hide_password=False)


def refused(url: str, role: str, statement: str) -> None:
    with psycopg.connect(as_login(url, LOGINS[role])) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement)


# --- a worker's whole life ---


def work(owner: str) -> None:
    """Everything that a worker does with the database, under a login that is a member of gasp_worker."""
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        require_usable_schema(store.server)
        scorer_id = consume(store)
        tell(store)
        attribute(store, scorer_id)
        ask_again(store, scorer_id)
        rescore(store)
        learn(store, scorer_id)
        hear(store)
        keep_up(store, owner)


def consume(store: Store) -> int:
    scorer_id, threshold = prepared(store)
    assert store.sampling.allowances(scorer_id, ["shop"])["shop"].policy == DEFAULT_POLICY
    batch = [
        selected(scored(0, "id-0", GAPS, threshold)),
        replace(scored(1, "id-1", GAPS, threshold), exports=("otlp",)),
        dead_letter(2),
        dead_letter(2, item=2),
        collected(3, "t-1", *rag()),
    ]
    assert store.settlements.settle(scorer_id, batch, [advance(0, 4)]).fenced == ()
    assert len(store.interactions.known(scorer_id, [_key(batch[0])])) == 1
    store.settlements.settle(scorer_id, [scored(4, "id-0", GAPS, threshold, edition="Once more. ")], [advance(4, 5)])
    store.settlements.settle(scorer_id, [scored(5, "id-0", GAPS, threshold)], [advance(5, 6)])
    at_once = TracePolicy(grace=timedelta(0), time_out=timedelta(0))
    store.settlements.settle(scorer_id, [collected(6, "t-1", step("more", "root"))], [advance(6, 7)], at_once)
    assemble(store, scorer_id, at_once)
    passed = store.offsets.claim(claim(owner="worker-2", generation=4, beginning=12))
    assert passed is not None
    assert passed.lost is not None
    return scorer_id


def assemble(store: Store, scorer_id: int, due: TracePolicy) -> None:
    """Close a trace; join what turns out to be one."""
    store.offsets.note_ends(TOPIC, "worker-1", {0: 7})
    (job,) = store.traces.claim("worker-1", topics=[TOPIC], policy=due, lease_s=60, limit=1)
    assert len(store.traces.pieces([job])[job.id]) == 2
    origin = Origin(job.id, job.version, job.trace, ClosedBy.COMPLETE, ())
    known = scored(3, "id-1", GAPS, store.thresholds.in_force(scorer_id)[None])
    again = replace(known, outcome=Outcome.SKIPPED, reason="duplicate", grounding=None, verdict=None, origin=origin)
    closing = Closing(job, ClosedBy.COMPLETE, "shop", ((again, 0),))
    assert store.traces.close(scorer_id, [closing]).traces == {ClosedBy.COMPLETE: 1}
    for offset, (key, within) in enumerate((("c", "b"), ("b", "a")), start=7):
        pieces, _ = kept_pieces([Piece(TraceKey("runs", key), (step(key, within),), "runs", within=within)])
        came = Settlement(record(offset), Outcome.COLLECTED, pieces=tuple(pieces))
        store.settlements.settle(scorer_id, [came], [advance(offset, offset + 1)], due)
    assert (store.traces.open().open, store.traces.close_surplus(10)) == (1, 0)


def _key(settlement: object) -> tuple[str, str, str]:
    logged = settlement.decoded.interaction  # type: ignore[attr-defined]  # a settlement with content
    return logged.app, logged.interaction_id, logged.content_hash


def tell(store: Store) -> None:
    (export,) = store.exports.claim("otlp", owner="worker-1", limit=1, lease_s=60, max_attempts=3)
    assert store.exports.finish(export)
    assert store.exports.open_backlogs() == {}
    events = store.outbox.claim(LeaseRequest("kafka", "worker-1", limit=1, lease_s=60, max_attempts=3, wait_s=0))
    assert store.outbox.note_sending(events, TopicEnds("tasks", None, {0: 0}), 60) == events
    assert store.outbox.finish(events) == 1
    assert store.outbox.open_backlogs()["webhook"].waiting == 1


def attribute(store: Store, scorer_id: int) -> None:
    job = store.attribution_jobs.claim("worker-1", scorer_id, 60, 3)
    assert job is not None
    assert store.attribution_jobs.finish(job, attributed(GAPS, [[0.4, -0.2], [0.3, 0.1]]))
    job = store.attribution_jobs.claim("worker-1", scorer_id, 60, 3)
    assert job is not None
    assert store.leases.retry(job, "for tests", 60)
    assert (store.attribution_jobs.backlog().done, store.attribution_jobs.backlog().waiting) == (1, 2)


def ask_again(store: Store, scorer_id: int) -> None:
    """A second opinion on the flagged sentence of each attributed answer."""
    while store.opinion_jobs.queue(scorer_id, "another", daily=10, limit=10):
        job = store.opinion_jobs.claim("worker-1", "another", 60, 3)
        assert job is not None
        assert store.opinion_jobs.finish(job, Opinion(OpinionLabel.PARTLY, 0.75, "another"))


def rescore(store: Store) -> None:
    scorer_id = prepared(store, OTHER_IDENTITY, partitions=0)[0]
    assert store.rescore_jobs.queue(scorer_id, History(OCCURRED_AT), None, limit=10).queued == 2
    (job,) = store.rescore_jobs.claim("worker-1", scorer_id, limit=1, lease_s=60, max_attempts=3)
    found = grounding(GAPS)
    judged = Judged(found, judge(scores_of(found), store.thresholds.in_force(scorer_id)[None]))
    assert store.rescore_jobs.finish(scorer_id, [(job, judged)]) == 1
    assert store.rescore_jobs.cancel(scorer_id, limit=10) == 1


def learn(store: Store, scorer_id: int) -> None:
    assert scorer_id in store.scorers.at_work()
    assert store.evidence.labelled_sentences(scorer_id) == []
    assert store.labelled_answers.texts().answers == ()
    present = store.thresholds.in_force(scorer_id)[None]
    found = CalibrationRun(None, scorer_id, "schedule", "new", "reached", present.id, {"n_labels": 300, "recall": 0.8})
    learned = store.calibration_runs.book(found, Proposal(None, scorer_id, 0.2, 0.5, "calibrated", "for tests"))
    assert learned is not None
    assert store.thresholds.in_force(scorer_id)[None].id == learned.id
    last = store.thresholds.last_activation(None, scorer_id)
    assert last is not None
    assert last.reason == "calibrated"
    assert store.calibration_runs.counts() == {("new", "reached"): 1}
    assert store.recent_scores.of("shop", scorer_id) is not None
    followed = Proposal("shop", scorer_id, 0.1, 0.5, "traffic", "for tests")
    assert store.thresholds.follow_traffic(followed, learned.id) is not None
    by_hand = Proposal(None, scorer_id, 0.2, 0.5, "manual", "for tests")
    assert store.thresholds.set_by_hand(by_hand, "ada").is_active
    assert set(store.thresholds.in_force(scorer_id)) == {None}


def hear(store: Store) -> None:
    """Two reviewers agree on one of the sentences that were asked about, and differ on the other."""
    said = [label("id-0", index, word, who) for index, words in enumerate(HEARD) for who, word in words.items()]
    assert store.labels.unknown_sentences(said) == set()
    assert set(store.labels.rehearse(said)) == set(store.labels.add(said, "file"))
    assert len(store.votes.last()) == 4
    assert store.labels.refresh_early() == 0


def keep_up(store: Store, owner: str) -> None:
    now = datetime.now(UTC)
    for due in (now - timedelta(days=50), now):
        assert store.job_runs.claim("retention", due, "worker-1")
        store.job_runs.end("retention", due, failed=False, detail=None)
    assert store.job_runs.prune(30) == 1
    assert store.leases.reap() == 0
    assert store.traces.empty(0, 10) == 1
    assert renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event()) == "2 usual days"
    assert list(TrafficFollower.of(store).follow(threading.Event())) == []
    assert store.weekly_partitions.ensure(ahead_days=40) > 0
    age(owner)
    assert store.retention.overdue().weekly_tables > 0
    removed = Remover.of(store).remove(threading.Event()).removed
    assert (removed.interactions, removed.ledger_rows, removed.lost_offsets) == (3, 9, 1)
    assert (removed.weekly_tables > 0, removed.traces) == (True, 1)
    assert store.offsets.statuses()[0].next_offset == 12
    assert store.ledger.counts() == {}


def age(owner: str) -> None:
    """Let everything that is stored be forty days old, and nothing be kept for longer than thirty."""
    with psycopg.connect(as_login(owner, "postgres")) as connection:
        connection.execute("SELECT ensure_weeks(now() - interval '60 days', now())")
        # The references would be looked at after each statement.
        connection.execute("SET session_replication_role = replica")
        for table, column in (
            ("interactions", "stored_at"),
            ("passages", "stored_at"),
            ("ledger", "settled_at"),
            ("offset_gaps", "noticed_at"),
            ("traces", "finished_at"),
        ):
            connection.execute(f"UPDATE {table} SET {column} = {column} - interval '40 days'")
    with open_store(owner, application_name="gasp-test") as store:
        store.retention_periods.set(Period(None, 30))


# --- the worker ---


def test_a_worker_can_do_all_its_work_with_the_worker_role(owner: str) -> None:
    work(owner)


def test_a_worker_needs_every_privilege_that_its_role_has(
    postgres_server: str, roles: str, subtests: pytest.Subtests
) -> None:
    granted = {row["granted"] for row in rows(roles, GRANTED)}
    assert granted > FOR_THE_RELEASE_BEFORE
    assert len(granted) > 40
    needed = sorted(granted - FOR_THE_RELEASE_BEFORE)
    # The worker's whole life over again for each of them: some where there is no time for all.
    for number, privilege in enumerate(needed[:: bar(1, 6)]):
        with subtests.test(privilege):
            url = copy_database(postgres_server, f"without_{number}", database_of(roles))
            rows(url, f"REVOKE {privilege} FROM gasp_worker")
            with pytest.raises(StoreNotReady, match=r"permission denied.*gasp-worker migrate --roles-sql"):
                work(url)
            drop_copy(postgres_server, f"without_{number}")


@pytest.mark.parametrize("statement", WORKER_MAY_NOT)
def test_a_worker_is_refused(roles: str, statement: str) -> None:
    refused(roles, "gasp_worker", statement)


@pytest.mark.usefixtures("roles")
def test_a_worker_cannot_migrate_and_is_told_who_can(empty_database_url: str) -> None:
    with pytest.raises(MigrationError, match=r"permission denied.*the database's owner"):
        upgrade(as_login(empty_database_url, LOGINS["gasp_worker"]))


def test_a_worker_writes_into_a_week_that_it_has_just_made(owner: str) -> None:
    week = f"{datetime.now(UTC):%Gw%V}"
    for table in ("passages", "sentences"):
        rows(owner, f"DROP TABLE {table}_{week}")
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        scorer_id, threshold = prepared(store)
        store.settlements.settle(scorer_id, [scored(0, "id-0", GAPS, threshold)], [advance(0, 1)])
    assert rows(owner, f"SELECT count(*) AS n FROM passages_{week}") == [{"n": 2}]


def test_a_worker_cannot_judge_again_what_is_stored_and_the_owner_can(owner: str) -> None:
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        scorer_id, threshold = prepared(store)
        store.settlements.settle(scorer_id, [scored(0, "id-0", GAPS, threshold)], [advance(0, 1)])
        store.thresholds.set_by_hand(Proposal("shop", scorer_id, 0.95, 0.95, "manual", "for tests"), "ada")
        before = rows(owner, "SELECT * FROM sentences")
        with pytest.raises(StoreNotReady, match="permission denied"):
            store.rejudging.step("shop", scorer_id, OCCURRED_AT, None, limit=10)
        assert rows(owner, "SELECT * FROM sentences") == before
    with open_store(owner, application_name="gasp-test") as store:
        assert store.rejudging.step("shop", scorer_id, OCCURRED_AT, None, limit=10).newly_flagged == 1


@pytest.mark.parametrize("table", ["passages", "sentences", "chunk_attributions"])
@pytest.mark.parametrize("role", LOGINS)
def test_a_week_is_reached_through_its_table_only(roles: str, role: str, table: str) -> None:
    refused(roles, role, f"SELECT count(*) FROM {table}_{datetime.now(UTC):%Gw%V}")


# --- those who read ---


@pytest.mark.parametrize("role", ["gasp_reviewer", "gasp_dashboard"])
def test_a_reader_reads_every_view(owner: str, role: str) -> None:
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        scorer_id = consume(store)
        attribute(store, scorer_id)
        # The answer of the first job was replaced meanwhile; v_chunk_usage is of current ones.
        job = store.attribution_jobs.claim("worker-1", scorer_id, 60, 3)
        assert job is not None
        assert store.attribution_jobs.finish(job, attributed(GAPS, [[0.4, -0.2], [0.3, 0.1]]))
        ask_again(store, scorer_id)
        learn(store, scorer_id)
        hear(store)
    views = [row["relname"] for row in rows(owner, RELATIONS) if row["is_view"] and row["relname"] != ENTRY]
    filled = {view for view in views if rows(as_login(owner, LOGINS[role]), f"SELECT * FROM {view} LIMIT 1")}
    assert filled == set(views) - {"v_job_runs"}


@pytest.mark.parametrize("statement", READERS_MAY_NOT)
@pytest.mark.parametrize("role", ["gasp_reviewer", "gasp_dashboard"])
def test_a_reader_is_refused(roles: str, role: str, statement: str) -> None:
    refused(roles, role, statement)


@pytest.mark.parametrize("role", ["gasp_reviewer", "gasp_dashboard"])
def test_a_reader_that_was_a_member_when_the_file_was_run_cannot_take_long(roles: str, role: str) -> None:
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
        assert rows(as_login(roles, LOGINS[role]), f"SHOW {setting}") == [{setting: "30s"}]
    assert rows(as_login(roles, LOGINS["gasp_worker"]), "SHOW statement_timeout") == [{"statement_timeout": "0"}]


# --- those who label ---

LABELLED = f"INSERT INTO {ENTRY} (app, interaction_id, sentence_index, label) VALUES ('shop', 'id-0', 1, 'Partly')"


def test_a_reviewer_labels_by_plain_sql_under_the_name_of_the_login(owner: str) -> None:
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        consume(store)
    reviewer = as_login(owner, LOGINS["gasp_reviewer"])
    rows(reviewer, LABELLED)
    assert rows(reviewer, "SELECT reviewer, label, tool FROM v_review_labels") == [
        {"reviewer": LOGINS["gasp_reviewer"], "label": "partly", "tool": "sql"}
    ]


LABEL = f"INSERT INTO {ENTRY} (task_id, sentence_index, label, reviewer, external_id, labelled_at, action) "
LABEL += "VALUES (%(task)s, 0, %(label)s, %(reviewer)s, %(id)s, %(at)s, coalesce(%(action)s, 'label'))"
ME = LOGINS["gasp_reviewer"]


@dataclass(frozen=True, slots=True)
class Desk:
    """A task that somebody else has labelled, and two logins of gasp_reviewer."""

    owner: str
    task: UUID

    def label(self, login: str = ME, **given: object) -> None:
        usual: dict[str, object] = dict.fromkeys(("reviewer", "id", "at", "action"))
        values = usual | {"task": self.task, "label": "partly"} | given
        rows(as_login(self.owner, login), LABEL, **values)

    def held(self) -> list[tuple[str, str, str]]:
        labels = "SELECT reviewer, label, tool FROM v_review_labels ORDER BY 1, 2"
        return [tuple(row.values()) for row in rows(self.owner, labels)]


OTHERS = [("bob_login", "supported", "sql"), ("cyd", "supported", "sql")]


@pytest.fixture
def desk(owner: str) -> Iterator[Desk]:
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        consume(store)
    (task,) = rows(owner, "SELECT task_id FROM review_tasks")
    rows(owner, "CREATE ROLE bob_login LOGIN IN ROLE gasp_reviewer")
    made = Desk(owner, task["task_id"])
    made.label("bob_login", label="supported")
    rows(owner, LABEL, task=made.task, label="supported", reviewer="cyd", id="desk-7", at=None, action=None)
    assert sorted(made.held()) == sorted(OTHERS)
    yield made
    rows(owner, "DROP OWNED BY bob_login; DROP ROLE bob_login")


@pytest.mark.parametrize(
    "given",
    [
        {"reviewer": "bob_login"},
        {"reviewer": "somebody"},
        {"id": "desk-7"},
        {"id": "bob_login:{task}:0"},
        {"id": "bob_login:{task}:1"},
        {"id": "md5:d41d8cd98f00b204e9800998ecf8427e"},
        {"id": "desk-7", "action": "withdraw", "label": None},
        {"id": "desk-7", "reviewer": "cyd"},
    ],
    ids=str,
)
def test_a_login_speaks_for_itself_and_leaves_the_labels_of_others_alone(desk: Desk, given: dict[str, Any]) -> None:
    if "id" in given:
        given = {**given, "id": given["id"].format(task=desk.task)}
    with pytest.raises(InsufficientPrivilege):
        desk.label(**given)
    assert sorted(desk.held()) == sorted(OTHERS)


def test_a_login_dates_its_labels_between_the_task_and_now(desk: Desk) -> None:
    (task,) = rows(desk.owner, "SELECT created_at FROM review_tasks")
    for at, told in ((task["created_at"] - timedelta(seconds=1), "before"), (_in_an_hour(), "future")):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=told):
            desk.label(at=at)
    desk.label(at=task["created_at"], id="mine")
    desk.label(id=f"{ME}:mine", label="unsupported")
    assert sorted(desk.held()) == sorted([*OTHERS, (ME, "partly", "sql"), (ME, "unsupported", "sql")])
    entered = "SELECT DISTINCT reviewer, entered_by FROM review_labels ORDER BY 1"
    assert [tuple(row.values()) for row in rows(desk.owner, entered)] == [
        ("bob_login", "bob_login"),
        ("cyd", "postgres"),
        (ME, ME),
    ]


def test_the_owner_says_which_reviewers_a_login_speaks_for(desk: Desk) -> None:
    rows(desk.owner, f"INSERT INTO reviewer_logins VALUES ('{ME}', 'ada')")
    desk.label()
    with pytest.raises(InsufficientPrivilege):
        desk.label(reviewer=ME)
    rows(desk.owner, f"INSERT INTO reviewer_logins VALUES ('{ME}', 'eve')")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="one of those"):
        desk.label()
    desk.label(reviewer="eve")
    assert sorted(desk.held()) == sorted([*OTHERS, ("ada", "partly", "sql"), ("eve", "partly", "sql")])
    refused(desk.owner, "gasp_reviewer", f"INSERT INTO reviewer_logins VALUES ('{ME}', 'dan')")


def _in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def test_a_dashboard_cannot_label(roles: str) -> None:
    refused(roles, "gasp_dashboard", LABELLED)


# --- the review page ---


def test_the_page_shows_tasks_and_adds_labels_and_takes_them_back(owner: str) -> None:
    with open_store(as_login(owner, LOGINS["gasp_worker"]), application_name="gasp-test") as store:
        consume(store)
    with open_store(as_login(owner, LOGINS["gasp_page"]), application_name="gasp-test") as store:
        require_usable_schema(store.server)
        asked = store.review_queue.take("ada", 60)
        assert asked is not None
        task = store.review_tasks.by_id(asked.task_id)
        assert task is not None
        ada = Reviewer("ada", Role.REVIEWER)
        assert store.labels.add([label_of(task, asked.sentence_index, ada, {"label": "partly"})], "page") == ["stored"]
        assert store.review_queue.progress("ada", TOOL).today == 1
        (said,) = store.review_queue.said_lately("ada", TOOL, 5)
        assert store.labels.add([withdrawal_of(said, ada)], "page") == ["withdrawn"]
        assert store.review_queue.waiting_by_app("ada") == [("shop", 1)]
        assert store.disputes.open(5) == []
        assert store.votes.last() == []
        assert store.stored_answers.named(task.app, task.interaction_id) is not None
        store.review_queue.skip("ada", asked.task_id, 60)
        assert store.review_queue.said_of("ada", TOOL, asked.task_id) == {}


@pytest.mark.parametrize("statement", PAGE_MAY_NOT)
def test_the_page_is_refused(roles: str, statement: str) -> None:
    refused(roles, "gasp_page", statement)


# --- the file ---


def test_the_file_names_every_table_and_view_and_no_other(roles: str) -> None:
    text = "\n".join(line for line in ROLES_FILE.read_text("utf-8").splitlines() if not line.startswith("--"))
    grants = re.findall(r"^GRANT [^;]*?\bON (?!FUNCTION)([a-z0-9_,\s]+?)\s+TO ", text, flags=re.MULTILINE)
    named = [name.strip() for listed in grants for name in listed.split(",")]
    assert set(named) == {row["relname"] for row in rows(roles, RELATIONS)}


def test_a_function_is_nobodys_unless_it_was_granted(roles: str) -> None:
    callers = """
        SELECT DISTINCT grantee::regrole::text AS grantee FROM pg_proc, aclexplode(proacl)
        WHERE pronamespace = current_schema()::regnamespace AND grantee <> proowner
    """
    assert {row["grantee"] for row in rows(roles, callers)} == {"gasp_worker", "gasp_page"}
    assert (
        rows(roles, "SELECT 1 FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proacl IS NULL")
        == []
    )


def test_a_login_without_a_role_cannot_connect(roles: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(as_login(roles, STRANGER))


def test_what_was_given_beyond_the_file_is_taken_back_by_the_next_run(owner: str) -> None:
    rows(
        owner, "GRANT UPDATE (answer) ON interactions TO gasp_worker; GRANT SELECT ON ledger TO PUBLIC, gasp_dashboard"
    )
    apply_roles(owner)
    refused(owner, "gasp_worker", "UPDATE interactions SET answer = ''")
    refused(owner, "gasp_dashboard", "SELECT * FROM ledger")


def test_what_a_later_revision_adds_is_nobodys(owner: str) -> None:
    rows(owner, "CREATE TABLE labels (id int); CREATE VIEW v_labels AS SELECT * FROM labels")
    for role in LOGINS:
        for name in ("labels", "v_labels"):
            refused(owner, role, f"SELECT * FROM {name}")


@pytest.mark.usefixtures("roles")
def test_an_owner_who_is_no_superuser_can_run_it_twice(postgres_server: str, tmp_path: Path) -> None:
    rows(postgres_server, "CREATE ROLE landlord LOGIN CREATEROLE")
    url = create_database(postgres_server, "let")
    rows(postgres_server, "ALTER DATABASE let OWNER TO landlord")
    url = as_login(url, "landlord")
    upgrade(url)
    # Under other names, since the roles belong to the whole server, and a superuser has made them.
    path = tmp_path / "roles.sql"
    path.write_text(ROLES_FILE.read_text("utf-8").replace("gasp_", "let_"), "utf-8")
    apply_roles(url, path)
    rows(url, "CREATE ROLE let_login LOGIN IN ROLE let_dashboard")
    assert "WARNING" not in apply_roles(url, path)
    read = as_login(url, "let_login")
    assert rows(read, "SELECT * FROM v_sentences") == []
    assert rows(read, "SHOW statement_timeout") == [{"statement_timeout": "30s"}]
    rows(postgres_server, f"GRANT let_dashboard TO {STRANGER}")
    assert f"no timeouts for {STRANGER}" in apply_roles(url, path)
    drop_database(postgres_server, "let")
