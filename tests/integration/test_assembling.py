"""Traces that are due become exchanges: with a real database, a broker for what is refused, and a quick scorer."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from gasp_core.detectors.two_pass import GAP
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason
from schemas.traces.step import Document, Step
from tests.brokers import Broker
from tests.integration.store_examples import BROKER_TIME_MS, TOPIC, advance, claim, rows
from tests.integration.trace_examples import collected, rag_steps
from tests.soak.scorer import IDENTITY, SoakScorer
from tests.unit.traces.steps import chain, llm, retriever, step
from worker.broker.scan import TopicScan
from worker.broker.sink import RecordSink
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.ends import PartitionEnds
from worker.ingest.judging import MAX_ATTEMPTS, Judging
from worker.ingest.scoring import Scoring
from worker.jobs.assembling import AssemblyWork
from worker.jobs.leased import LeasePolicy
from worker.rules import pieces as rules
from worker.rules.pieces import TracePolicy
from worker.rules.records import Record
from worker.rules.settlement import Outcome, Settlement
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.store import Store, open_store
from worker.store.traces import Closing

DUE = TracePolicy(grace=timedelta(0), time_out=timedelta(hours=1))
TRACES = """
SELECT trace_id, state, closed_by, outcome, reason, app, closings, late_pieces, is_incomplete
FROM traces ORDER BY trace_id
"""
CURRENT = """
SELECT app, interaction_id, revision, answer FROM interactions WHERE is_current ORDER BY app, interaction_id
"""


class FailingScorer(SoakScorer):
    """Fails on answers that begin so."""

    fails_on = "nothing begins like this"

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score, or fail."""
        if any(one.answer.startswith(self.fails_on) for one in exchanges):
            raise RuntimeError("the device is unhappy")
        return super().score(exchanges, method)


@dataclass
class Desk:
    """Collects pieces and closes traces, as a worker does that has all partitions."""

    store: Store
    url: str
    scorer: FailingScorer
    scorer_id: int
    broker: Broker
    sink: RecordSink
    letters: str
    next_offsets: dict[int, int]

    def collect(self, trace_id: str, *steps: Step, partition: int = 0, **more: Any) -> None:
        """One message with steps of a trace."""
        offset = self.next_offsets[partition]
        self.settle([collected(offset, trace_id, *steps, partition=partition, **more)], partition)

    def settle(self, batch: Sequence[Settlement], partition: int = 0) -> None:
        """Messages of a partition, one behind the other, up to its end."""
        expected = self.next_offsets[partition]
        end = expected + len(batch)
        step_ahead = replace(advance(expected, end, partition), end_offset=end)
        settled = self.store.settlements.settle(self.scorer_id, batch, [step_ahead], DUE)
        assert settled.fenced == ()
        self.next_offsets[partition] = end
        self.ask_ends()

    def ask_ends(self) -> None:
        """As the thread that polls does, now and then."""
        self.store.offsets.note_ends(TOPIC, "worker-1", self.next_offsets)

    def work(self, owner: str = "worker-1", **more: Any) -> AssemblyWork:
        """What closes traces."""
        telemetry = Telemetry()
        retry = RetryPolicy(Stop(), telemetry, part="test", within_s=60)
        judging = Judging(
            interactions=self.store.interactions,
            thresholds=self.store.thresholds,
            sampling=self.store.sampling,
            scoring=Scoring(self.scorer, telemetry.metrics),
            scorer_id=self.scorer_id,
            detector=GAP,
            retry=retry,
            metrics=telemetry.metrics,
        )
        values = {
            "traces": self.store.traces,
            "offsets": self.store.offsets,
            "leases": self.store.leases,
            "judging": judging,
            "dead_letters": DeadLetters(self.sink, self.letters, 1_000_000),
            "lookup": lambda _: {},
            "ends": PartitionEnds(),
            "topics": [TOPIC],
            "due": DUE,
            "open_per_app": 100,
            "default_app": "default",
            "policy": LeasePolicy(owner, 60.0, max_attempts=3),
            "retry": retry,
            "metrics": telemetry.metrics,
        }
        return AssemblyWork(**values | more)  # type: ignore[arg-type]  # each under its name

    def close_all(self, **more: Any) -> None:
        """Close what is due, until nothing is."""
        work = self.work(**more)
        while work.run():
            pass

    def let_time_pass(self) -> None:
        """Let the time-out of every trace be over."""
        rows(
            self.url,
            "UPDATE traces SET last_at = last_at - interval '2 hours', run_after = run_after - interval '2 hours'",
        )

    def traces(self) -> list[dict[str, Any]]:
        return rows(self.url, TRACES)

    def current(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in rows(self.url, CURRENT)]

    def dead(self) -> list[tuple[DeadLetter, Record]]:
        """The letters that were sent."""
        items = [item for item in TopicScan(self.broker.bootstrap, self.letters) if isinstance(item, Record)]
        return [(DeadLetter.from_headers(record.headers), record) for record in items]


@pytest.fixture
def desk(tansu: Broker, store: Store, database_url: str) -> Iterator[Desk]:
    scorer_id = store.scorers.register(IDENTITY)
    store.thresholds.ensure_default(scorer_id, 1.0, 1.5, "for tests")
    for partition in range(3):
        assert store.offsets.claim(claim(partition)) is not None
    with RecordSink(tansu.bootstrap) as sink:
        yield Desk(
            store,
            database_url,
            FailingScorer(0),
            scorer_id,
            tansu,
            sink,
            tansu.create_topic(),
            dict.fromkeys(range(3), 0),
        )


def test_a_trace_whose_pieces_are_all_there_is_scored_once_and_names_them(desk: Desk) -> None:
    root, found, said = rag_steps(1)
    desk.collect("t-1", found, partition=1)
    desk.collect("t-1", said, partition=2)
    desk.collect("t-1", said, partition=0)
    assert not desk.work().run()
    desk.collect("t-1", root, partition=1)
    desk.close_all()
    assert desk.traces() == [
        {
            "trace_id": "t-1",
            "state": "done",
            "closed_by": "complete",
            "outcome": "scored",
            "reason": None,
            "app": "tea-room",
            "closings": 1,
            "late_pieces": 0,
            "is_incomplete": False,
        }
    ]
    assert desk.current() == [("tea-room", "t-1", 1, "Tea is drunk hot in the tea room.")]
    (shown,) = rows(desk.url, "SELECT * FROM v_interactions")
    place = {"topic": TOPIC, "incarnation": 0}
    assert shown["sources"] == [
        place | {"partition": 1, "offsets": [0, 1]},
        place | {"partition": 2, "offsets": [0]},
    ]
    assert (shown["trace_system"], shown["trace_id"], shown["trace_closed_by"]) == ("otlp", "t-1", "complete")
    assert (shown["source_partition"], shown["source_offset"], shown["adapter"]) == (1, 1, "otlp")
    assert len(rows(desk.url, "SELECT * FROM sentences")) == 1
    assert {row["outcome"] for row in rows(desk.url, "SELECT outcome FROM ledger")} == {"collected"}
    (trace,) = rows(desk.url, "SELECT * FROM v_traces")
    assert (trace["state"], trace["waits_for"], trace["interactions"]) == ("closed", None, 1)
    (day,) = rows(desk.url, "SELECT * FROM v_traces_1d")
    assert (day["app"], day["outcome"], day["traces"], day["interactions"]) == ("tea-room", "scored", 1, 1)


def test_a_trace_of_which_steps_are_missing_waits_for_its_time_out_and_says_so(desk: Desk) -> None:
    _, found, said = rag_steps(1)
    late_parent = chain("above", "root")
    desk.collect("t-1", late_parent, replace_parent(found, "above"), replace_parent(said, "above"))
    desk.collect("t-2", *rag_steps(2)[:2], llm("said", "lost", "Tea is drunk hot in the tea room."))
    waiting = {row["trace_id"]: row["waits_for"] for row in rows(desk.url, "SELECT trace_id, waits_for FROM v_traces")}
    assert waiting == {"t-1": "root", "t-2": "grace"}
    desk.close_all()
    waiting = {row["trace_id"]: row["waits_for"] for row in rows(desk.url, "SELECT trace_id, waits_for FROM v_traces")}
    assert waiting == {"t-1": "root", "t-2": "parents"}
    assert desk.current() == []
    desk.let_time_pass()
    desk.close_all()
    assert [(row["closed_by"], row["outcome"], row["is_incomplete"]) for row in desk.traces()] == [
        ("time_out", "scored", True)
    ] * 2
    shown = rows(desk.url, "SELECT trace_closed_by FROM v_interactions")
    assert [row["trace_closed_by"] for row in shown] == ["time_out"] * 2


def replace_parent(one: Step, parent: str) -> Step:
    return one.model_copy(update={"parent": parent})


def test_a_trace_is_not_closed_while_a_partition_lies_behind_it(desk: Desk) -> None:
    root, _, said = rag_steps(1)
    desk.collect("t-1", root, said)

    def lie_behind(next_offset: int, broker_time_ms: int | None) -> None:
        values = {"next": next_offset, "at": broker_time_ms}
        rows(
            desk.url,
            """UPDATE partition_offsets SET next_offset = %(next)s, end_offset = 9,
                last_broker_time = to_timestamp(%(at)s::bigint / 1000.0) WHERE partition = 2""",
            **values,
        )

    for broker_time_ms in (None, BROKER_TIME_MS - 1):
        lie_behind(0, broker_time_ms)
        assert not desk.work().run()
    # Nothing of it can lie where what is read already is of a later time.
    lie_behind(0, BROKER_TIME_MS)
    assert desk.work().run()
    desk.collect("t-2", *rag_steps(2))
    lie_behind(0, BROKER_TIME_MS - 1)
    assert not desk.work().run()
    # Read to its end; but there may be more since its end was asked for.
    lie_behind(9, BROKER_TIME_MS - 1)
    for asked_at in ("now() - interval '1 minute'", "NULL"):
        rows(desk.url, f"UPDATE partition_offsets SET end_asked_at = {asked_at} WHERE partition = 2")
        assert not desk.work().run()
    ends = PartitionEnds()
    ends.put(TOPIC, {2: 9})
    assert desk.work(ends=ends).run()
    assert [row["outcome"] for row in desk.traces()] == ["skipped", "scored"]


def test_partitions_of_other_topics_and_of_topics_that_are_gone_keep_nobody_waiting(desk: Desk) -> None:
    rows(desk.url, "UPDATE partition_offsets SET end_offset = 9, vanished_at = now() WHERE partition = 2")
    rows(
        desk.url, "INSERT INTO partition_offsets (topic, partition, next_offset, end_offset) VALUES ('labels', 0, 0, 9)"
    )
    desk.collect("t-1", *rag_steps(1))
    rows(
        desk.url,
        "UPDATE partition_offsets SET end_asked_at = NULL, end_offset = 9 WHERE partition = 2 OR topic = 'labels'",
    )
    assert desk.work().run()


@pytest.mark.parametrize("seed", range(4))
def test_however_the_pieces_fall_two_workers_make_one_result_of_each_trace(desk: Desk, seed: int) -> None:
    order = random.Random(seed)
    count = 12
    messages = [(f"t-{number:02}", step) for number in range(count) for step in rag_steps(number)]
    messages += order.sample(messages, 8)
    order.shuffle(messages)
    shares: Mapping[int, list[tuple[str, Step]]] = {0: messages[::2], 1: messages[1::2]}
    begin = threading.Barrier(2, timeout=30)

    def run(partition: int) -> None:
        with open_store(desk.url, application_name="gasp-test") as store:
            own = replace(desk, store=store)
            work = own.work(f"worker-{partition}")
            begin.wait()
            for trace_id, one in shares[partition]:
                own.collect(trace_id, one, partition=partition)
                work.run()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, shares))
    desk.close_all()
    assert [(app, interaction_id) for app, interaction_id, *_ in desk.current()] == [
        ("tea-room", f"t-{number:02}") for number in range(count)
    ]
    assert {(row["state"], row["closed_by"], row["outcome"]) for row in desk.traces()} == {
        ("done", "complete", "scored")
    }
    found = """
    SELECT i.interaction_id, count(*) AS n FROM interactions i JOIN passages p ON p.interaction_pk = i.id
    WHERE i.is_current GROUP BY 1
    """
    passages = rows(desk.url, found)
    assert {row["n"] for row in passages} == {2}
    assert len(passages) == count


def test_a_late_piece_that_says_more_makes_a_new_revision_and_one_that_does_not_a_duplicate(desk: Desk) -> None:
    root, found, said = rag_steps(1)
    desk.collect("t-1", root, said, found)
    desk.close_all()
    desk.collect("t-1", step("extra", "root"))
    desk.close_all()
    (told,) = rows(desk.url, "SELECT sources FROM v_interactions")
    assert told["sources"] == [{"topic": TOPIC, "partition": 0, "incarnation": 0, "offsets": [0, 1]}]
    (same,) = desk.traces()
    assert (same["closings"], same["late_pieces"], same["outcome"]) == (2, 1, "scored")
    assert len(desk.current()) == 1
    assert rows(desk.url, "SELECT count(*) AS n FROM interactions") == [{"n": 1}]
    more = retriever("more", "root", Document(text="Tea is drunk with care.", id="d-3"), at=2)
    desk.collect("t-1", more, partition=1)
    desk.close_all()
    assert desk.current() == [("tea-room", "t-1", 2, "Tea is drunk hot in the tea room.")]
    (trace,) = desk.traces()
    assert (trace["closings"], trace["late_pieces"], trace["outcome"]) == (3, 2, "scored")
    (shown,) = rows(desk.url, "SELECT revision, sources FROM v_interactions")
    assert [one["partition"] for one in shown["sources"]] == [0, 1]


def test_what_a_late_piece_shows_to_be_another_exchange_is_told_once(desk: Desk) -> None:
    root, found, said = rag_steps(1)
    desk.collect("t-1", replace_app(found, None), said)
    desk.let_time_pass()
    desk.close_all()
    assert [(app, name) for app, name, *_ in desk.current()] == [("default", "t-1")]
    desk.collect("t-1", root)
    desk.close_all()
    assert [(app, name) for app, name, *_ in desk.current()] == [("tea-room", "t-1")]
    assert [row["app"] for row in desk.traces()] == ["tea-room"]


def replace_app(one: Step, app: str | None) -> Step:
    return one.model_copy(update={"app": app})


def test_steps_that_came_while_their_trace_was_closed_are_not_lost(desk: Desk) -> None:
    root, found, said = rag_steps(1)
    desk.collect("t-1", root, said)
    (job,) = desk.store.traces.claim("worker-1", topics=[TOPIC], policy=DUE, lease_s=60, limit=5)
    desk.collect("t-1", found)
    skipped = Settlement(collected(0, "t-1", root).record, Outcome.SKIPPED, "not_rag")
    closing = Closing(job, rules.ClosedBy.COMPLETE, "tea-room", ((skipped, 0),))
    closed = desk.store.traces.close(desk.scorer_id, [closing])
    assert (closed.traces, closed.results) == ({}, {})
    assert [row["state"] for row in desk.traces()] == ["waiting"]
    desk.close_all()
    assert [(row["outcome"], row["closings"]) for row in desk.traces()] == [("scored", 1)]


def test_a_worker_that_lost_its_lease_closes_nothing(desk: Desk) -> None:
    desk.collect("t-1", *rag_steps(1))
    (lost,) = desk.store.traces.claim("worker-1", topics=[TOPIC], policy=DUE, lease_s=60, limit=5)
    rows(desk.url, "UPDATE traces SET leased_until = now() - interval '1 second'")
    assert desk.store.leases.reap() == 1
    (job,) = desk.store.traces.claim("worker-2", topics=[TOPIC], policy=DUE, lease_s=60, limit=5)
    skipped = Settlement(collected(0, "t-1", *rag_steps(1)).record, Outcome.SKIPPED, "not_rag")
    closings = [Closing(one, rules.ClosedBy.COMPLETE, "tea-room", ((skipped, 0),)) for one in (lost, job)]
    assert desk.store.traces.close(desk.scorer_id, closings[:1]).traces == {}
    assert desk.store.traces.postpone(lost, DUE) is False
    assert desk.store.traces.close(desk.scorer_id, closings[1:]).traces == {rules.ClosedBy.COMPLETE: 1}


def test_several_workers_share_what_is_due(desk: Desk) -> None:
    for number in range(6):
        desk.collect(f"t-{number}", *rag_steps(number))
    first = desk.store.traces.claim("worker-1", topics=[TOPIC], policy=DUE, lease_s=60, limit=4)
    second = desk.store.traces.claim("worker-2", topics=[TOPIC], policy=DUE, lease_s=60, limit=4)
    assert [job.trace.id for job in first] == ["t-0", "t-1", "t-2", "t-3"]
    assert [job.trace.id for job in second] == ["t-4", "t-5"]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([chain("root")], "not_rag"),
        ([chain("root"), retriever("found", "root", Document(text="Tea."))], "no_answer"),
        ([chain("root", answer="Hot."), retriever("found", "root", Document(id="d-9"))], "passages_without_text"),
    ],
)
def test_why_a_trace_has_no_exchange_is_said_of_it(desk: Desk, steps: list[Step], reason: str) -> None:
    desk.collect("t-1", *steps)
    desk.close_all()
    assert [(row["outcome"], row["reason"], row["app"]) for row in desk.traces()] == [("skipped", reason, "default")]
    assert desk.current() == []
    assert desk.dead() == []


def test_documents_that_are_only_named_are_looked_up(desk: Desk) -> None:
    desk.collect("t-1", chain("root", answer="Tea is drunk hot here."), retriever("found", "root", Document(id="d-9")))
    desk.close_all(lookup=lambda ids: dict.fromkeys(ids, "Tea is hot."))
    assert [row["text"] for row in rows(desk.url, "SELECT text FROM passages")] == ["Tea is hot."]


def test_a_trace_that_cannot_be_scored_is_a_letter_without_its_value_and_its_replay_opens_it_again(desk: Desk) -> None:
    desk.scorer.fails_on = "Tea"
    root, found, said = rag_steps(1)
    desk.collect("t-1", found, said, partition=1)
    one = collected(0, "t-1", root)
    headers = (("content-type", b"application/json"),)
    desk.settle([replace(one, record=replace(one.record, key=b"k", headers=headers))])
    desk.close_all()
    assert [(row["outcome"], row["reason"]) for row in desk.traces()] == [("dead_lettered", "scoring_failed")]
    ((letter, record),) = desk.dead()
    assert (letter.reason, letter.detail) == (RejectReason.SCORING_FAILED, "RuntimeError")
    assert (letter.topic, letter.partition, letter.offset, letter.size_bytes) == (TOPIC, 0, 0, 2)
    assert (letter.value_attached, letter.headers_attached, letter.timestamp_ms) == (False, True, BROKER_TIME_MS)
    assert (record.value, record.key, record.headers[-1]) == (None, b"k", headers[0])
    desk.scorer.fails_on = "nothing"
    desk.collect("t-1", root)
    desk.close_all()
    assert [(row["outcome"], row["closings"]) for row in desk.traces()] == [("scored", 2)]
    assert len(desk.current()) == 1


def test_an_exchange_that_the_contract_refuses_is_a_letter_that_says_what_is_wrong(desk: Desk) -> None:
    desk.collect("t-1", *rag_steps(1, app="x" * 200))
    desk.close_all()
    assert [(row["outcome"], row["reason"]) for row in desk.traces()] == [("dead_lettered", "wrong_shape")]
    ((letter, _),) = desk.dead()
    assert letter.detail == "app: string_too_long"


def test_a_trace_that_is_too_large_is_refused_and_nothing_is_kept_of_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_STEPS", 4)
    desk.collect("t-1", *rag_steps(1))
    desk.collect("t-1", step("a", "root"), step("b", "root"))
    desk.close_all()
    assert [(row["closed_by"], row["outcome"], row["reason"]) for row in desk.traces()] == [
        ("too_large", "dead_lettered", "too_large")
    ]
    ((letter, _),) = desk.dead()
    assert (letter.reason, letter.offset) == (RejectReason.TOO_LARGE, 0)
    assert rows(desk.url, "SELECT * FROM trace_pieces") == []
    desk.collect("t-1", step("c", "root"))
    assert rows(desk.url, "SELECT reason FROM ledger ORDER BY record_offset DESC LIMIT 1") == [
        {"reason": "trace_too_large"}
    ]
    assert not desk.work().run()


def test_of_too_many_open_traces_the_oldest_are_closed_as_they_are(desk: Desk) -> None:
    for number in (0, 1, 2, 3, 4):
        desk.collect(f"t-{number}", *rag_steps(number)[1:], partition=0)
    desk.collect("t-0", step("more", "root"))
    # They wait for nothing then, not even for what lies ahead.
    rows(desk.url, "UPDATE partition_offsets SET end_offset = 99 WHERE partition = 1")
    with capture_logs() as logs:
        desk.close_all(open_per_app=3)
    # Something came of the first a moment ago.
    assert [(row["state"], row["closed_by"]) for row in desk.traces()] == [
        ("waiting", None),
        *[("done", "too_many_open")] * 2,
        *[("waiting", None)] * 2,
    ]
    assert [row["trace_closed_by"] for row in rows(desk.url, "SELECT trace_closed_by FROM v_interactions")] == [
        "too_many_open"
    ] * 2
    assert "too_many_open_traces" in [entry["event"] for entry in logs]


def test_a_trace_that_ended_its_workers_is_given_up_alone(desk: Desk) -> None:
    for number in range(3):
        desk.collect(f"t-{number}", *rag_steps(number))
    rows(desk.url, "UPDATE traces SET attempts = %(n)s WHERE trace_id = 't-1'", n=MAX_ATTEMPTS)
    desk.close_all()
    assert [(row["trace_id"], row["outcome"], row["reason"]) for row in desk.traces()] == [
        ("t-0", "scored", None),
        ("t-1", "dead_lettered", "scoring_failed"),
        ("t-2", "scored", None),
    ]
    assert [letter.detail for letter, _ in desk.dead()] == ["WorkerEnded"]


def test_a_trace_that_the_database_refuses_takes_no_other_along(desk: Desk) -> None:
    rows(desk.url, "ALTER TABLE interactions ADD CONSTRAINT ck_interactions_short CHECK (length(answer) < 60)")
    desk.collect("t-0", *rag_steps(0))
    desk.collect("t-1", *rag_steps(1, answer="Tea is drunk hot. " * 9))
    desk.collect("t-2", *rag_steps(2))
    desk.close_all()
    assert [(row["trace_id"], row["outcome"], row["reason"]) for row in desk.traces()] == [
        ("t-0", "scored", None),
        ("t-1", "dead_lettered", "store_rejected"),
        ("t-2", "scored", None),
    ]
    assert [letter.detail for letter, _ in desk.dead()] == ["ck_interactions_short"]


def test_what_was_kept_goes_after_its_days_and_the_trace_with_its_apps_data(desk: Desk) -> None:
    for number in range(3):
        desk.collect(f"t-{number}", *rag_steps(number))
    desk.close_all()
    rows(desk.url, "UPDATE traces SET finished_at = finished_at - interval '9 days' WHERE trace_id <> 't-2'")
    assert desk.store.traces.empty(8, 1) == 1
    assert desk.store.traces.empty(8, 500) == 1
    assert desk.store.traces.empty(8, 500) == 0
    assert rows(desk.url, "SELECT count(*) AS n FROM trace_pieces") == [{"n": 1}]
    assert desk.store.retention.delete_traces("tea-room", 5) == 0
    rows(desk.url, "INSERT INTO retention_periods (app, keep_days) VALUES (NULL, 5)")
    assert desk.store.retention.apps() == ["tea-room"]
    assert desk.store.retention.overdue().traces == 2
    assert desk.store.retention.delete_traces("tea-room", 5) == 2
    assert [row["trace_id"] for row in desk.traces()] == ["t-2"]
    # One that comes again is a trace of its own then, of the same exchange.
    desk.collect("t-0", *rag_steps(0))
    desk.close_all()
    assert [row["trace_id"] for row in desk.traces()] == ["t-0", "t-2"]
    assert len(desk.current()) == 3


def test_what_is_open_is_told(desk: Desk) -> None:
    assert desk.store.traces.open().open == 0
    desk.collect("t-0", *rag_steps(0)[1:])
    desk.collect("t-1", *rag_steps(1))
    found = desk.store.traces.open()
    assert (found.open, found.without_root) == (2, 1)
    assert found.oldest_at is not None
    desk.close_all()
    assert desk.store.traces.open().open == 1
