"""Review tasks on their topic: whole, once, and whatever ends the relay."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from schemas.review_task import Attribution, ReviewTask
from tests.brokers import Broker
from tests.integration.review_examples import EVENTS, end_leases, issue_tasks, no_attribution, review_settings
from tests.integration.store_examples import (
    IDENTITY,
    OTHER_IDENTITY,
    advance,
    answer_of,
    attributed,
    interaction,
    prepared,
    rows,
    scored,
)
from tests.waiting import wait_until
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.errors import BrokerUnavailable
from worker.broker.scan import TopicScan
from worker.review.topic import TopicRelay
from worker.rules.records import Record
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.service import run_service
from worker.settings.roles import Role
from worker.store.review_tasks import REMOVED, REPLACED
from worker.store.store import Store

RELAYED = "gasp_relayed_events_total"


@contextmanager
def relay(store: Store, url: str, broker: Broker, topic: str, **overrides: object) -> Iterator[TopicRelay]:
    settings = review_settings(url, broker.bootstrap, review_tasks_topic=topic, **overrides)
    opened = TopicRelay(settings, store.outbox, store.leases, "relay", Stop(), Telemetry())
    yield opened
    opened.close()


def settled(relay: TopicRelay, outcome: str) -> int:
    registry = relay._telemetry.metrics._registry
    return int(registry.get_sample_value(RELAYED, {"channel": "kafka", "outcome": outcome}) or 0)


def records(broker: Broker, topic: str) -> list[Record]:
    return [item for item in TopicScan(broker.bootstrap, topic) if isinstance(item, Record)]


def told(broker: Broker, topic: str) -> list[ReviewTask]:
    return [ReviewTask.model_validate_json(record.value or b"") for record in records(broker, topic)]


def test_a_task_is_told_once_with_all_that_a_reviewer_needs(store: Store, database_url: str, tansu: Broker) -> None:
    topic = tansu.create_topic()
    issue_tasks(store, 1, "kafka")
    scorer_id, _ = prepared(store, partitions=0)
    job = store.attribution_jobs.claim("engine", scorer_id, 60, 3)
    assert job is not None
    drops = [[0.1, 0.1], [0.1, 0.7], [0.0, 0.0], [-0.1, -0.2]]
    assert store.attribution_jobs.finish(job, attributed([0.9, -0.2, None, 0.05], drops))
    words = "worst_start = start_char + 2, worst_end = end_char"
    rows(database_url, f"UPDATE sentences SET {words} WHERE sentence_index = 1")
    with relay(store, database_url, tansu, topic) as sender:
        assert sender.run_once()
        assert not sender.run_once()
        assert settled(sender, "sent") == 1
    (record,) = records(tansu, topic)
    (event,) = rows(database_url, EVENTS)
    headers = {name: (value or b"").decode() for name, value in record.headers}
    assert record.key == b"shop/id-0"
    assert headers == {"event-id": event["event_id"], "schema": "gasp.review-task.v1"}
    assert event["state"] == "done"
    task = ReviewTask.model_validate_json(record.value or b"")
    logged = interaction("id-0", answer_of(4))
    assert (task.event_id, task.round, task.scorer) == (UUID(event["event_id"]), 1, IDENTITY.label)
    assert (task.question, task.answer, task.threshold_version) == (logged.question, logged.answer, "*/1")
    assert [(one.position, one.id, one.text) for one in task.passages] == [
        (position, passage.id, passage.text) for position, passage in enumerate(logged.passages)
    ]
    assert "".join(sentence.text for sentence in task.sentences) == task.answer
    assert [sentence.text for sentence in task.sentences] == [
        task.answer[sentence.start : sentence.end] for sentence in task.sentences
    ]
    assert [(one.asked, one.probability, one.score, one.flagged) for one in task.sentences] == [
        (False, None, 0.9, False),
        (True, 0.25, -0.2, True),
        (False, None, None, None),
        (True, 0.25, 0.05, True),
    ]
    assert [one.attribution for one in task.sentences][1:] == [
        Attribution.SUPPORTED,
        Attribution.NOT_WANTED,
        Attribution.NONE_REACTS,
    ]
    assert (task.sentences[1].supporting_passage_position, task.sentences[1].supporting_passage_id) == (1, "p1")
    assert [one.supporting_passage_positions for one in task.sentences] == [(0,), (1,), (), ()]
    second = task.sentences[1]
    assert [(one.worst_start, one.worst_end) for one in task.sentences] == [
        (None, None),
        (second.start + 2, second.end),
        (None, None),
        (None, None),
    ]


@pytest.mark.parametrize(("step", "outcomes"), [("note_sending", (3, 0)), ("send", (3, 0)), ("finish", (0, 3))])
def test_a_relay_that_is_killed_at_any_step_leaves_each_event_to_be_told_exactly_once(
    store: Store, database_url: str, broker: Broker, step: str, outcomes: tuple[int, int]
) -> None:
    topic = broker.create_topic(partitions=2)
    issue_tasks(store, 3, "kafka")
    no_attribution(database_url)
    broker.send(topic, [b"what others sent before"])
    command = [sys.executable, "-m", "tests.integration.dying_relay", database_url, broker.bootstrap, topic, step]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    broker.send(topic, [b"what others sent since"])
    end_leases(store, database_url)
    with relay(store, database_url, broker, topic) as sender:
        assert sender.run_once()
        assert (settled(sender, "sent"), settled(sender, "found")) == outcomes
    events = rows(database_url, EVENTS)
    ids = [dict(record.headers).get("event-id", b"") for record in records(broker, topic)]
    assert sorted(filter(None, ids)) == sorted(event["event_id"].encode() for event in events)
    assert {event["state"] for event in events} == {"done"}


def test_who_was_told_of_a_task_is_told_when_another_scorer_takes_the_answer_over(
    store: Store, database_url: str, tansu: Broker
) -> None:
    topic = tansu.create_topic()
    issue_tasks(store, 2, "kafka")
    no_attribution(database_url)
    other, threshold = prepared(store, OTHER_IDENTITY, partitions=0)
    with relay(store, database_url, tansu, topic) as sender:
        assert sender.run_once()
        again = scored(2, "id-1", [0.9, -0.2, None, 0.05], threshold)
        store.settlements.settle(other, [again], [advance(2, 3)])
        no_attribution(database_url)
        assert sender.run_once()
        assert not sender.run_once()
    first, second, taken_back = told(tansu, topic)
    assert [one.withdrawn_because for one in (first, second, taken_back)] == [None, None, REPLACED]
    assert (taken_back.task_id, taken_back.interaction_id, taken_back.round) == (second.task_id, "id-1", 2)
    assert [one.asked for one in taken_back.sentences] == [False] * 4
    assert [one.text for one in taken_back.sentences] == [one.text for one in second.sentences]
    plain = json.loads(records(tansu, topic)[1].value or b"")
    assert "withdrawn_because" not in plain


def test_a_missing_topic_is_waited_for_and_costs_no_attempt(store: Store, database_url: str, tansu: Broker) -> None:
    issue_tasks(store, 1, "kafka")
    no_attribution(database_url)
    topic = "not-there-yet"
    with relay(store, database_url, tansu, topic) as sender:
        with pytest.raises(BrokerUnavailable, match="gasp-worker topics"):
            sender.run_once()
        (event,) = rows(database_url, EVENTS)
        assert (event["state"], event["attempts"]) == ("waiting", 0)
        with BrokerAdmin(tansu.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, 1)])
        assert sender.run_once()
    assert len(told(tansu, topic)) == 1


def test_what_can_never_be_told_fails_with_its_reason_and_holds_up_nothing(
    store: Store, database_url: str, tansu: Broker
) -> None:
    topic = tansu.create_topic(config={"max.message.bytes": "3000"})
    issue_tasks(store, 3, "kafka")
    no_attribution(database_url)
    rows(database_url, "UPDATE interactions SET question = repeat('long ', 1000) WHERE interaction_id = 'id-0'")
    rows(database_url, "DELETE FROM interactions WHERE interaction_id = 'id-1'")
    with relay(store, database_url, tansu, topic, max_message_bytes=4096) as sender:
        assert sender.run_once()
        assert (settled(sender, "sent"), settled(sender, "failed")) == (1, 2)
    too_large, removed, sent = rows(database_url, EVENTS)
    assert (too_large["state"], removed["state"], sent["state"]) == ("failed", "failed", "done")
    assert too_large["last_error"].startswith("too large")
    assert removed["last_error"] == REMOVED
    assert [task.interaction_id for task in told(tansu, topic)] == ["id-2"]


def test_a_worker_of_the_maintain_role_tells_what_waits_until_it_is_stopped(
    database_url: str, store: Store, tansu: Broker
) -> None:
    topic = tansu.create_topic()
    issue_tasks(store, 2, "kafka")
    no_attribution(database_url)
    settings = review_settings(database_url, tansu.bootstrap, review_tasks_topic=topic, review_labels_topic="")
    stop = Stop()
    worker = threading.Thread(target=run_service, args=(settings, {Role.MAINTAIN}, stop))
    worker.start()
    try:
        done = "SELECT id FROM outbox WHERE state = 'done'"
        wait_until(lambda: len(rows(database_url, done)) == 2, what="both tasks told")
    finally:
        stop.set()
        worker.join(30)
    assert not worker.is_alive()
    assert [task.interaction_id for task in told(tansu, topic)] == ["id-0", "id-1"]
