"""Every write of every repository is a unit of work that is run again after a conflict, and no read is one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.databases import copy_database, drop_copy
from tests.integration.label_examples import label
from tests.integration.store_bench import (
    AT_ONCE,
    DROPS,
    DUE,
    EVENTS,
    HISTORY,
    SCORES,
    UNKNOWN,
    VERIFIER,
    Claimed,
    closing,
    filled,
)
from tests.integration.store_examples import (
    TOPIC,
    advance,
    attributed,
    claim,
    grounding,
    record,
    rows,
    scored,
    selected,
)
from worker.rules.allowance import UsualDay
from worker.rules.label_settlement import LabelSettlement
from worker.rules.opinion import Opinion, OpinionLabel
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.settlement import Outcome
from worker.rules.verdict import MANUAL, judge
from worker.store.calibration_runs import CalibrationRun
from worker.store.outbox import TopicEnds
from worker.store.repository import Repository
from worker.store.retention_periods import Period
from worker.store.revisions import Judged
from worker.store.store import Store, open_store
from worker.store.task_contents import TaskFilter
from worker.store.threshold_versions import Proposal

# The first row that is written in a database is a conflict; a sequence does not go back when a transaction does. It
# comes at the commit, when the whole unit is done; with a label at once: a rehearsal leaves nothing to its commit.
CONFLICT = """
CREATE SEQUENCE conflicts;
CREATE FUNCTION meet_another() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('conflicts') = 1 THEN RAISE EXCEPTION 'met another' USING ERRCODE = 'serialization_failure'; END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION meet_another_ddl() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('conflicts') = 1 THEN RAISE EXCEPTION 'met another' USING ERRCODE = 'deadlock_detected'; END IF;
END $$;
DO $$
DECLARE
    of_table regclass;
BEGIN
    FOR of_table IN SELECT oid FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND NOT relispartition
    LOOP
        EXECUTE 'CREATE CONSTRAINT TRIGGER meet_another AFTER INSERT OR UPDATE OR DELETE ON ' || of_table
            || ' DEFERRABLE INITIALLY '
            || CASE WHEN of_table = 'review_labels'::regclass THEN 'IMMEDIATE' ELSE 'DEFERRED' END
            || ' FOR EACH ROW EXECUTE FUNCTION meet_another()';
    END LOOP;
END $$;
"""
DDL_CONFLICT = "CREATE EVENT TRIGGER meet_another ON ddl_command_start EXECUTE FUNCTION meet_another_ddl()"
ROWS = """
SELECT string_agg(
    'SELECT ' || quote_literal(relname) || ' AS name, count(*) AS n FROM ' || oid::regclass, ' UNION ALL ') AS query
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
_numbers = itertools.count(1)

Write = Callable[[Store, Claimed], bool]
"""Gives whether the result is what it is without a conflict."""


def _run(at: Claimed) -> CalibrationRun:
    return CalibrationRun("help", at.scorer_id, "command", "new", "better", at.threshold.id, {"n_labels": 3})


def _proposal(at: Claimed, app: str | None = "help") -> Proposal:
    return Proposal(app, at.scorer_id, 0.3, 0.5, MANUAL, "a test")


def _task(store: Store) -> UUID:
    """Any task that there is."""
    return next(store.review_tasks.all(TaskFilter())).task_id


def _before() -> datetime:
    return datetime.now(UTC) - timedelta(days=30)


WRITES: Mapping[str, Write] = {
    "scorers.register": lambda store, _: store.scorers.register(UNKNOWN) > 0,
    "thresholds.ensure_default": lambda store, at: (
        store.thresholds.ensure_default(at.unseeded_id, 0.1, 0.2, "a test") is None
    ),
    "thresholds.add": lambda store, at: store.thresholds.add(_proposal(at)).name == "help/2",
    "thresholds.set_by_hand": lambda store, at: store.thresholds.set_by_hand(_proposal(at), "ada").is_active,
    "thresholds.activate": lambda store, at: store.thresholds.activate(at.stored_version, "ada") is not None,
    "thresholds.follow_traffic": lambda store, at: (
        store.thresholds.follow_traffic(_proposal(at), at.threshold.id) is not None
    ),
    "thresholds.roll_back": lambda store, at: store.thresholds.roll_back("shop", at.scorer_id, "ada") is not None,
    "calibration_runs.book": lambda store, at: store.calibration_runs.book(_run(at), _proposal(at)) is not None,
    "offsets.claim": lambda store, _: store.offsets.claim(claim(2)) is not None,
    "offsets.take_back_attempt": lambda store, _: store.offsets.take_back_attempt([advance(8, 9)]) is None,
    "settlements.begin": lambda store, _: store.settlements.begin([advance(8, 9)]) == 1,
    "settlements.settle": lambda store, at: (
        store.settlements.settle(
            at.scorer_id, [selected(scored(8, "new", SCORES, at.threshold))], [advance(8, 9)]
        ).fenced
        == ()
    ),
    "label_settlements.settle": lambda store, _: (
        store.label_settlements.settle(
            [LabelSettlement(record(0, 1), Outcome.LABELLED, labels=(label("id-1", 0, "supported"),))],
            [advance(0, 1, 1)],
        ).fenced
        == ()
    ),
    "labels.add": lambda store, _: store.labels.add([label("id-1", 0, "supported")], "file") == ["stored"],
    "labels.rehearse": lambda store, _: store.labels.rehearse([label("id-1", 0, "supported")]) == ["stored"],
    "labels.refresh_early": lambda store, _: store.labels.refresh_early() == 1,
    "leases.renew": lambda store, at: store.leases.renew(at.job, 60),
    "leases.retry": lambda store, at: store.leases.retry(at.job, "a test", 60),
    "leases.release": lambda store, at: store.leases.release(at.job),
    "leases.fail": lambda store, at: store.leases.fail(at.job, "a test"),
    "leases.reap": lambda store, _: store.leases.reap() == 1,
    "attribution_jobs.claim": lambda store, at: store.attribution_jobs.claim("w", at.scorer_id, 60, 3) is not None,
    "attribution_jobs.finish": lambda store, at: store.attribution_jobs.finish(at.job, attributed(SCORES, DROPS)),
    "rejudging.step": lambda store, at: (
        store.rejudging.step("shop", at.scorer_id, HISTORY.since, None, limit=5).answers > 0
    ),
    "rescore_jobs.queue": lambda store, at: store.rescore_jobs.queue(at.other_id, HISTORY, None, limit=5).queued == 2,
    "rescore_jobs.cancel": lambda store, at: store.rescore_jobs.cancel(at.other_id, limit=5) == 2,
    "rescore_jobs.claim": lambda store, at: (
        len(store.rescore_jobs.claim("w", at.other_id, limit=5, lease_s=60, max_attempts=3)) == 2
    ),
    "rescore_jobs.finish": lambda store, at: (
        store.rescore_jobs.finish(at.other_id, [(at.rescoring, Judged(grounding(SCORES), judge(SCORES, at.threshold)))])
        == 1
    ),
    "traces.claim": lambda store, _: (
        len(store.traces.claim("w", topics=["other"], policy=AT_ONCE, lease_s=60, limit=1)) == 1
    ),
    "traces.postpone": lambda store, at: store.traces.postpone(at.trace, AT_ONCE),
    "traces.close": lambda store, at: store.traces.close(at.scorer_id, [closing(at.trace)]).traces == {"complete": 1},
    "traces.close_surplus": lambda store, _: store.traces.close_surplus(1) == 2,
    "traces.empty": lambda store, _: store.traces.empty(30, 10) == 1,
    "retention.delete_traces": lambda store, _: store.retention.delete_traces("shop", 10) == 1,
    "offsets.note_ends": lambda store, _: store.offsets.note_ends(TOPIC, "worker-1", {0: 20}) is None,
    "exports.claim": lambda store, _: (
        len(store.exports.claim("otlp", owner="w", limit=5, lease_s=60, max_attempts=3)) == 1
    ),
    "exports.finish": lambda store, at: store.exports.finish(at.export),
    "replacement.close": lambda store, _: store.replacement.close(10) == 1,
    "opinion_jobs.queue": lambda store, at: (
        store.opinion_jobs.queue(at.scorer_id, "verifier-2", daily=10, limit=2) == 2
    ),
    "opinion_jobs.claim": lambda store, _: store.opinion_jobs.claim("w", VERIFIER, 60, 3) is not None,
    "opinion_jobs.finish": lambda store, at: store.opinion_jobs.finish(
        at.opinion, Opinion(OpinionLabel.SUPPORTED, 0.1, VERIFIER)
    ),
    "outbox.claim": lambda store, _: len(store.outbox.claim(EVENTS)) == EVENTS.limit,
    "outbox.note_sending": lambda store, at: (
        store.outbox.note_sending(at.events, TopicEnds("tasks", None, {0: 3}), 60) == at.events
    ),
    "outbox.finish": lambda store, at: store.outbox.finish(at.events) == len(at.events),
    "policies.set": lambda store, _: store.policies.set(DEFAULT_POLICY) is None,
    "policies.clear": lambda store, _: store.policies.clear("shop"),
    "sampling.set_usual_days": lambda store, at: (
        store.sampling.set_usual_days({("shop", at.scorer_id): UsualDay(3, 20, 0.5)}) is None
    ),
    "review_queue.take": lambda store, _: store.review_queue.take("ada", 60) is not None,
    "review_queue.hold": lambda store, _: store.review_queue.hold("ada", _task(store), 60) is None,
    "review_queue.skip": lambda store, _: store.review_queue.skip("ada", _task(store), 60) is None,
    "job_runs.claim": lambda store, _: store.job_runs.claim("daily", DUE + timedelta(days=1), "worker-2"),
    "job_runs.end": lambda store, _: store.job_runs.end("daily", DUE, failed=False, detail="a test") is None,
    "job_runs.prune": lambda store, _: store.job_runs.prune(30) == 1,
    "weekly_partitions.ensure": lambda store, _: store.weekly_partitions.ensure(28 + 7) == 3,
    "weekly_partitions.drop": lambda store, _: store.weekly_partitions.drop("passages", _before()) > 0,
    "retention_periods.set": lambda store, _: store.retention_periods.set(Period("help", 3)) is None,
    "retention_periods.clear": lambda store, _: store.retention_periods.clear("shop"),
    "retention.delete_open_jobs": lambda store, _: store.retention.delete_open_jobs(_before(), 10) > 0,
    "retention.delete_interactions": lambda store, _: store.retention.delete_interactions("shop", 10) == 1,
    "retention.delete_ledger": lambda store, _: store.retention.delete_ledger(TOPIC, 0, _before(), 10) == 1,
    "retention.delete_lost_offsets": lambda store, _: store.retention.delete_lost_offsets(_before()) == 1,
}
READS = {
    "job_runs.now",
    "attribution_jobs.backlog",
    "attribution_jobs.open_backlog",
    "calibration_runs.counts",
    "disputes.open",
    "evidence.labelled_sentences",
    "evidence.unanswered_sentences",
    "evidence.population",
    "exports.open_backlogs",
    "interactions.apps",
    "interactions.apps_with",
    "interactions.known",
    "labelled_answers.texts",
    "labels.unknown_sentences",
    "ledger.counts",
    "ledger.records",
    "offsets.partitions",
    "offsets.positions",
    "offsets.statuses",
    "outbox.open_backlogs",
    "policies.all",
    "policies.in_force",
    "previews.flagging_below",
    "recent_scores.of",
    "reports.read",
    "rescore_jobs.backlog",
    "retention.apps",
    "retention.overdue",
    "retention_periods.all",
    "retention_periods.cutoff",
    "review_queue.progress",
    "review_queue.said_lately",
    "review_queue.said_of",
    "review_queue.waiting_by_app",
    "review_tasks.all",
    "review_tasks.by_id",
    "review_tasks.count",
    "sampling.allowances",
    "sampling.common_allowance",
    "sampling.recent_scores",
    "sampling.traffic",
    "scorers.at_work",
    "scorers.known",
    "scorers.newest_method",
    "scorers.newest_of",
    "sentences.rows",
    "server.ping",
    "server.schema",
    "stored_answers.named",
    "thresholds.activations",
    "thresholds.in_force",
    "thresholds.last_activation",
    "thresholds.versions",
    "traces.counts",
    "traces.open",
    "traces.pieces",
    "votes.last",
}


@pytest.fixture(scope="module")
def bench(postgres_server: str, template_database: str) -> Iterator[tuple[str, Claimed]]:
    """The name of a database in which every write has something to do, and meets another transaction first."""
    url = copy_database(postgres_server, "units_of_work", template_database)
    with open_store(url, application_name="gasp-test") as store:
        claimed = filled(store, url)
    rows(url, CONFLICT)
    rows(url, DDL_CONFLICT)
    yield "units_of_work", claimed
    drop_copy(postgres_server, "units_of_work")


@pytest.fixture
def copied(postgres_server: str, bench: tuple[str, Claimed]) -> Iterator[Callable[[], str]]:
    """Makes copies of that database; gives their URLs."""
    made: list[str] = []

    def copy() -> str:
        made.append(f"unit_of_work_{next(_numbers)}")
        return copy_database(postgres_server, made[-1], bench[0])

    yield copy
    for name in made:
        drop_copy(postgres_server, name)


def _methods(store: Store) -> set[str]:
    """Every public method of every repository."""
    return {
        f"{name}.{method}"
        for name, repository in vars(store).items()
        if isinstance(repository, Repository)
        for method in vars(type(repository))
        if not method.startswith("_")
    }


def _sizes(url: str) -> dict[str, int]:
    """The rows of every table."""
    (found,) = rows(url, ROWS)
    return {row["name"]: row["n"] for row in rows(url, found["query"])}


def _met(url: str) -> bool:
    return bool(rows(url, "SELECT is_called FROM conflicts")[0]["is_called"])


def test_every_method_of_every_repository_is_known_to_read_or_to_write(store: Store) -> None:
    assert not READS & WRITES.keys()
    assert _methods(store) == READS | WRITES.keys()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_meets_another_transaction_is_run_again_and_does_the_same(
    bench: tuple[str, Claimed], copied: Callable[[], str], name: str
) -> None:
    disturbed, alone = copied(), copied()
    rows(alone, "SELECT setval('conflicts', 1)")
    for url in (alone, disturbed):
        with open_store(url, application_name="gasp-test") as store:
            assert WRITES[name](store, bench[1])
    assert _met(disturbed), "nothing was written"
    assert _sizes(disturbed) == _sizes(alone)
