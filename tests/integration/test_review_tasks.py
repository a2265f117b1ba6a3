"""Review tasks: chosen while a batch is judged, written with its results, withdrawn with its answers."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Executable

from gasp_core.detectors.two_pass import GAP
from tests.brokers import Broker
from tests.exchanges import exchange
from tests.integration.store_examples import (
    OTHER_IDENTITY,
    TOPIC,
    advance,
    age,
    claim,
    interaction,
    prepared,
    rows,
    scored,
    selected,
    skipped,
)
from tests.soak.scorer import IDENTITY, SoakScorer
from worker.broker.sink import RecordSink
from worker.embedded.databases import create_database, drop_database
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.judging import Judging
from worker.ingest.scoring import Scoring
from worker.ingest.settle import Ingest
from worker.jobs.leased import LeasePolicy
from worker.jobs.rescoring import RescoringWork
from worker.jobs.retention import Remover
from worker.rules.allowance import UsualDay
from worker.rules.calibration.curve import Curve
from worker.rules.policy import DEFAULT_POLICY, ReviewPolicy
from worker.rules.records import Record
from worker.rules.selection import Reason, SamplingBudget, Selection, select
from worker.rules.settlement import Outcome, Settled
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.rescore_jobs import History
from worker.store.retention_periods import Period
from worker.store.review_tasks import REMOVED
from worker.store.store import Store, open_store
from worker.store.task_ids import event_id

FLAG_BELOW = 1.0
TASKS = "SELECT * FROM review_tasks ORDER BY id"
SENTENCES = "SELECT * FROM review_sentences ORDER BY task_pk, sentence_index"
OUTBOX = "SELECT task_pk, channel, round, state, attempts, last_error FROM outbox ORDER BY task_pk, channel"
TABLES = ("review_tasks", "review_sentences", "outbox")


def counts(url: str) -> tuple[int, ...]:
    """How many tasks, sentences and events there are."""
    return tuple(int(rows(url, f"SELECT count(*) AS n FROM {table}")[0]["n"]) for table in TABLES)


# --- written with the results ---


def test_a_selection_becomes_a_task_with_its_sentences_and_an_event_for_each_channel_and_without_a_word_of_the_answer(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    plain = scored(0, "a", [0.75, None, 0.01, 0.9], threshold)
    asked = selected(plain, indexes=(0, 2), probability=0.25, reviewers=3)
    store.settlements.settle(scorer_id, [asked, scored(1, "b", [0.01], threshold)], [advance(0, 2)])
    stored = rows(database_url, "SELECT id FROM interactions WHERE interaction_id = 'a'")[0]
    (task,) = rows(database_url, TASKS)
    assert {name: task[name] for name in ("app", "interaction_id", "revision", "interaction_pk")} == {
        "app": "shop",
        "interaction_id": "a",
        "revision": 1,
        "interaction_pk": stored["id"],
    }
    assert (task["scorer_id"], task["threshold_id"]) == (scorer_id, threshold.id)
    assert (task["reason"], task["probability"], task["lowest_score"], task["reviewers"]) == ("flagged", 0.25, 0.01, 3)
    assert (task["state"], task["round"], task["closed_at"]) == ("open", 1, None)
    assert plain.grounding is not None
    spans = [found.sentence for found in plain.grounding.sentences]
    assert [tuple(row.values()) for row in rows(database_url, SENTENCES)] == [
        (task["id"], 0, spans[0].start, spans[0].end, 0.75, False, "sampled", 0.25, None, None),
        (task["id"], 2, spans[2].start, spans[2].end, 0.01, True, "flagged", 0.25, None, None),
    ]
    assert [tuple(row.values()) for row in rows(database_url, OUTBOX)] == [
        (task["id"], "kafka", 1, "waiting", 0, None),
        (task["id"], "webhook", 1, "waiting", 0, None),
    ]
    written = json.dumps([rows(database_url, f"SELECT * FROM {table}") for table in TABLES], default=str)
    logged = interaction("a", "")
    for text in (logged.question, logged.passages[0].text, "Zug"):
        assert text not in written


def test_another_revision_is_another_task_and_without_a_channel_there_is_no_event(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    editions = [scored(n, "a", [0.01], threshold, edition=edition) for n, edition in enumerate(("", "New. "))]
    batch = [selected(editions[0]), selected(editions[1], channels=())]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)])
    assert [row["revision"] for row in rows(database_url, TASKS)] == [1, 2]
    assert counts(database_url) == (2, 2, 2)


def test_a_batch_of_a_partition_that_is_not_ours_any_more_writes_no_task(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    assert store.offsets.claim(claim(owner="worker-2", generation=4)) is not None
    asked = selected(scored(0, "a", [0.01], threshold))
    assert store.settlements.settle(scorer_id, [asked], [advance(0, 1)]).fenced == ((TOPIC, 0),)
    assert counts(database_url) == (0, 0, 0)


def test_a_batch_that_breaks_off_before_the_commit_leaves_no_task_and_the_next_try_makes_one(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer_id, threshold = prepared(store)
    asked = selected(scored(0, "a", [0.01], threshold))

    def die(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("worker.store.settlements.write_ledger", die)
        with pytest.raises(SystemExit):
            store.settlements.settle(scorer_id, [asked], [advance(0, 1)])
    assert counts(database_url) == (0, 0, 0)
    store.settlements.settle(scorer_id, [asked], [advance(0, 1)])
    assert counts(database_url) == (1, 1, 2)


def test_content_that_is_known_gets_no_second_task_whichever_way_it_comes_back(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    asked = selected(scored(0, "a", [0.01], threshold))
    store.settlements.settle(scorer_id, [asked], [advance(0, 1)])
    before = [rows(database_url, f"SELECT * FROM {table}") for table in TABLES]
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0")
    store.settlements.settle(scorer_id, [asked], [advance(0, 1)])
    again = selected(scored(1, "a", [0.01], threshold))
    done = store.settlements.settle(scorer_id, [again, selected(scored(2, "a", [0.01], threshold))], [advance(1, 3)])
    assert done.counts == {(Outcome.SKIPPED, "duplicate"): 2}
    assert [rows(database_url, f"SELECT * FROM {table}") for table in TABLES] == before


def test_tasks_take_a_few_statements_however_many_and_none_where_nobody_is_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer_id, threshold = prepared(store)
    statements: list[int] = []
    execute = Connection.execute

    def counted(connection: Connection, statement: Executable, parameters: dict[str, Any] | None = None) -> object:
        statements[-1] += 1
        return execute(connection, statement, parameters)

    monkeypatch.setattr(Connection, "execute", counted)
    for start, size, asks in ((0, 300, False), (300, 1, True), (301, 300, True)):
        statements.append(0)
        batch = [scored(n, f"id-{n}", [0.01, 0.9], threshold) for n in range(start, start + size)]
        store.settlements.settle(
            scorer_id, [selected(one) for one in batch] if asks else batch, [advance(start, start + size)]
        )
    assert statements[1] == statements[2] == statements[0] + 1


def test_the_calibrated_probability_is_stored_beside_the_score(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    learned = replace(threshold, curve=Curve((0.0, 1.0), (0.8, 0.2)))
    store.settlements.settle(scorer_id, [scored(0, "a", [0.5, None], learned)], [advance(0, 1)])
    store.settlements.settle(scorer_id, [scored(1, "b", [0.5], threshold), skipped(2, "c", learned)], [advance(1, 3)])
    found = rows(database_url, "SELECT score, unsupported_probability AS p FROM sentences ORDER BY 1, 2")
    assert [(row["score"], row["p"]) for row in found] == [(0.5, 0.5), (0.5, None), (None, None), (None, None)]


# --- the ids of tasks and events ---

IDS = """
SELECT t.task_id, t.interaction_id, o.channel, o.round, o.event_id
FROM review_tasks t JOIN outbox o ON o.task_pk = t.id ORDER BY t.id, o.channel, o.round"""


def test_a_restored_database_that_chooses_again_gives_the_same_ids_to_tasks_and_events(
    store: Store, database_url: str, postgres_server: str
) -> None:
    scorer_id, threshold = prepared(store)
    asked = [selected(scored(n, f"id-{n}", [0.01, 0.9], threshold)) for n in range(3)]
    # Nobody may be connected to what is copied.
    store.close()
    backup = create_database(postgres_server, "a_backup", template=_database_of(database_url))
    with open_store(backup, application_name="gasp-test") as restored:
        # Rows get other numbers than they had, and the choice is another one.
        other_id, _ = prepared(restored, OTHER_IDENTITY, partitions=0)
        assert other_id != scorer_id
        store.settlements.settle(scorer_id, asked, [advance(0, 3)])
        again = [
            scored(0, "id-0", [0.01, 0.9], threshold),
            *(selected(scored(n, f"id-{n}", [0.01, 0.9], threshold), indexes=(1,), probability=0.1) for n in (1, 2)),
        ]
        restored.settlements.settle(scorer_id, again, [advance(0, 3)])
    before, after = rows(database_url, IDS), rows(backup, IDS)
    drop_database(postgres_server, "a_backup")
    assert after == [row for row in before if row["interaction_id"] != "id-0"]
    assert len({row["task_id"] for row in before}) == 3
    assert len({row["event_id"] for row in before}) == 6
    assert all(row["event_id"] == event_id(row["task_id"], row["channel"], row["round"]) for row in before)


def test_tasks_about_other_contents_times_and_scorers_have_other_ids(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    other_id, other = prepared(store, OTHER_IDENTITY, partitions=0)
    first = scored(0, "a", [0.01], threshold)
    batch = [
        first,
        scored(1, "a", [0.01], threshold, edition="New. "),
        scored(2, "b", [0.01], threshold),
        scored(3, "a", [0.01], threshold, app="desk"),
    ]
    store.settlements.settle(scorer_id, [selected(one) for one in batch], [advance(0, 4)])
    store.settlements.settle(other_id, [selected(scored(4, "a", [0.01], other))], [advance(4, 5)])
    found = rows(database_url, "SELECT task_id, state FROM review_tasks")
    assert len({row["task_id"] for row in found}) == 5


def test_an_id_that_is_used_again_after_retention_gets_a_task_of_its_own_even_for_the_same_words(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    store.retention_periods.set(Period(None, 30))
    for turn in range(3):
        asked = selected(scored(turn, "a", [0.01], threshold), probability=(turn + 1) / 4)
        store.settlements.settle(scorer_id, [asked], [advance(turn, turn + 1)])
        if turn < 2:
            age(database_url, "a", 40)
            assert Remover.of(store).remove(threading.Event()).removed.interactions == 1
    found = rows(
        database_url,
        "SELECT task_id, state, probability, interaction_pk IS NULL AS removed FROM review_tasks ORDER BY id",
    )
    assert len({row["task_id"] for row in found}) == 3
    assert [(row["state"], row["probability"], row["removed"]) for row in found] == [
        ("withdrawn", 0.25, True),
        ("withdrawn", 0.5, True),
        ("open", 0.75, False),
    ]


def _database_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


# --- chosen while a batch is judged ---

Settle = Callable[[int, int], Settled]
DRAWS = 20_261_130
HISTORY = History(datetime(2020, 1, 1, tzinfo=UTC))


@pytest.fixture
def scorer_id(store: Store) -> int:
    """A scorer that flags about three sentences in ten."""
    registered = store.scorers.register(IDENTITY)
    store.thresholds.ensure_default(registered, FLAG_BELOW, FLAG_BELOW, "for tests")
    assert store.offsets.claim(claim()) is not None
    return registered


@pytest.fixture
def settle(tansu: Broker, store: Store, scorer_id: int) -> Settle:
    """Settles the exchanges from one number up to another as one batch, with draws that can be drawn again."""
    telemetry = Telemetry()
    with RecordSink(tansu.bootstrap) as sink:
        retry = RetryPolicy(Stop(), telemetry, part="test", within_s=60)
        judging = Judging(
            interactions=store.interactions,
            thresholds=store.thresholds,
            sampling=store.sampling,
            scoring=Scoring(SoakScorer(0), telemetry.metrics),
            scorer_id=scorer_id,
            detector=GAP,
            retry=retry,
            metrics=telemetry.metrics,
            channels=("kafka",),
            uniform=random.Random(DRAWS).random,
        )
        ingest = Ingest(
            judging=judging,
            settlements=store.settlements,
            dead_letters=DeadLetters(sink, "no-letters", 1_000_000),
            max_message_bytes=1_000_000,
            default_app="default",
            retry=retry,
            metrics=telemetry.metrics,
        )

    def run(start: int, end: int) -> Settled:
        values = [json.dumps(exchange(number)).encode() for number in range(start, end)]
        records = [Record(TOPIC, 0, start + n, None, value) for n, value in enumerate(values)]
        return ingest.settle(records, [advance(start, end)])

    return run


def policy(app: str | None = "museums", **changes: Any) -> ReviewPolicy:
    return replace(DEFAULT_POLICY, app=app, **changes)


def expected_selections(url: str, budget: SamplingBudget) -> list[tuple[int, Selection]]:
    """Draw again: what each answer must have become, in the order of settling."""
    scores = """
        SELECT array_agg(s.score ORDER BY s.sentence_index) AS gaps
        FROM interactions i JOIN verdicts v ON v.interaction_pk = i.id JOIN sentences s ON s.verdict_id = v.id
        GROUP BY i.source_offset ORDER BY i.source_offset
    """
    draws = random.Random(DRAWS)
    found = []
    for number, row in enumerate(rows(url, scores)):
        selection = select(row["gaps"], FLAG_BELOW, budget, draws.random())
        if selection is None:
            continue
        found.append((number, selection))
        reasons = [one.reason for one in selection.sentences]
        budget = replace(
            budget,
            flagged_issued=budget.flagged_issued + reasons.count(Reason.FLAGGED),
            sampled_issued=budget.sampled_issued + reasons.count(Reason.SAMPLED),
        )
    return found


def test_the_budget_is_kept_and_each_stored_probability_is_the_one_that_was_drawn_against(
    store: Store, database_url: str, settle: Settle, scorer_id: int
) -> None:
    store.policies.set(policy(daily_sentences=100, sampled_share=0.4, reviewers=2))
    usual = UsualDay(flagged=250.0, sampled=300.0, spread=1.0)
    store.sampling.set_usual_days({("museums", scorer_id): usual})
    for start, end in ((0, 40), (40, 41), (41, 150), (150, 240)):
        settle(start, end)
    asked = rows(database_url, SENTENCES)
    by_reason = {reason: sum(row["reason"] == reason for row in asked) for reason in ("flagged", "sampled")}
    # Of three times as many flagged sentences and ten times as many others.
    assert 30 <= by_reason["flagged"] <= 60
    assert 20 <= by_reason["sampled"] <= 40

    expected = expected_selections(
        database_url, SamplingBudget(60, 0, usual.flagged, 40, 0, usual.sampled, usual.spread)
    )
    tasks = rows(database_url, TASKS)
    assert [(row["interaction_id"], row["reason"], row["probability"]) for row in tasks] == [
        (f"museum-{number}", selection.reason, selection.probability) for number, selection in expected
    ]
    assert [(row["sentence_index"], row["probability"], row["reason"]) for row in asked] == [
        (one.sentence_index, one.probability, one.reason) for _, selection in expected for one in selection.sentences
    ]
    assert {row["reviewers"] for row in tasks} == {2}
    assert [row["channel"] for row in rows(database_url, OUTBOX)] == ["kafka"] * len(tasks)


def test_neither_a_duplicate_nor_a_rescored_answer_becomes_a_task(
    store: Store, database_url: str, settle: Settle, scorer_id: int
) -> None:
    store.policies.set(policy(daily_sentences=0))
    settle(0, 30)
    store.policies.set(policy(daily_sentences=10_000))
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0")
    settle(0, 30)
    rows(database_url, "DELETE FROM verdicts")
    assert store.rescore_jobs.queue(scorer_id, HISTORY, None, limit=100).queued == 30
    rescoring = RescoringWork(
        queue=store.rescore_jobs,
        leases=store.leases,
        thresholds=store.thresholds,
        scoring=Scoring(SoakScorer(0), Telemetry().metrics),
        scorer_id=scorer_id,
        detector=GAP,
        policy=LeasePolicy("test", 60, 2),
        batch_answers=30,
    )
    assert rescoring.run()
    assert rows(database_url, "SELECT count(*) AS n FROM verdicts") == [{"n": 30}]
    assert counts(database_url) == (0, 0, 0)
    settle(30, 60)
    assert counts(database_url)[0] > 0


# --- withdrawn with the answers ---


@pytest.mark.parametrize("period", [Period(None, 30), Period("shop", 30)], ids=["by week", "by row"])
def test_retention_withdraws_the_open_tasks_of_what_it_removes_and_keeps_what_people_said(
    store: Store, database_url: str, period: Period
) -> None:
    scorer_id, threshold = prepared(store)
    names = ("open", "disputed", "labelled", "new")
    batch = [selected(scored(n, name, [0.01], threshold)) for n, name in enumerate(names)]
    store.settlements.settle(scorer_id, batch, [advance(0, 4)])
    rows(database_url, "UPDATE review_tasks SET state = 'disputed' WHERE interaction_id = 'disputed'")
    rows(
        database_url, "UPDATE review_tasks SET state = 'labelled', closed_at = now() WHERE interaction_id = 'labelled'"
    )
    label = """
        INSERT INTO review_labels (tool, external_id, action, label, task_id, sentence_index, reviewer, source)
        SELECT 'test', interaction_id, 'label', 'supported', task_id, 0, 'ann', 'file' FROM review_tasks
    """
    rows(database_url, label)
    done = "UPDATE outbox SET state = 'done', finished_at = now() WHERE channel = 'webhook'"
    rows(database_url, done)
    for name in names[:3]:
        age(database_url, name, 40)
    store.retention_periods.set(period)
    assert Remover.of(store).remove(threading.Event()).removed.interactions == 3

    states = [(row["interaction_id"], row["state"], row["interaction_pk"] is None) for row in rows(database_url, TASKS)]
    assert states == [
        ("open", "withdrawn", True),
        ("disputed", "withdrawn", True),
        ("labelled", "labelled", True),
        ("new", "open", False),
    ]
    assert counts(database_url) == (4, 4, 8)
    assert rows(database_url, "SELECT count(*) AS n FROM review_labels") == [{"n": 4}]
    kafka = [(row["state"], row["last_error"]) for row in rows(database_url, OUTBOX) if row["channel"] == "kafka"]
    assert kafka == [("failed", REMOVED), ("failed", REMOVED), ("waiting", None), ("waiting", None)]


def test_a_task_is_withdrawn_before_the_week_of_its_passages_is_dropped(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [selected(scored(n, f"id-{n}", [0.01], threshold)) for n in range(3)]
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    for name in ("id-0", "id-1"):
        age(database_url, name, 40)
    before = datetime.now(UTC) - timedelta(days=30)
    # A limit for each kind, of which the attribution jobs are another.
    assert [store.retention.delete_open_jobs(before, 1) for _ in range(3)] == [2, 2, 0]
    states = [(row["state"], row["interaction_pk"] is None) for row in rows(database_url, TASKS)]
    assert states == [("withdrawn", False), ("withdrawn", False), ("open", False)]
