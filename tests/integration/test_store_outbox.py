from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.review_task import ReviewTask
from tests.integration.review_examples import EVENTS, end_leases, issue_tasks, no_attribution
from tests.integration.store_examples import rows
from tests.workers import WORKER
from worker.store.leases import Backlog
from worker.store.outbox import LeaseRequest, OutboxEvent, TopicEnds
from worker.store.store import Store
from worker.store.task_contents import TaskFilter

TAKE = LeaseRequest("webhook", "relay-1", limit=2, lease_s=60, max_attempts=3, wait_s=600)
ENDS = TopicEnds("tasks", "first-topic", {0: 7, 11: 0})


def told_of(events: tuple[OutboxEvent, ...]) -> list[str]:
    return [event.task.interaction_id for event in events if event.task is not None]


def test_events_are_claimed_by_channel_in_the_order_of_writing(store: Store, database_url: str) -> None:
    issue_tasks(store, 3, "webhook")
    no_attribution(database_url)
    assert store.outbox.claim(replace(TAKE, channel="kafka")) == ()
    assert told_of(store.outbox.claim(TAKE)) == ["id-0", "id-1"]
    assert told_of(store.outbox.claim(replace(TAKE, owner="relay-2"))) == ["id-2"]
    assert store.outbox.open_backlogs() == {"webhook": Backlog(running=3)}


def test_what_waits_for_attribution_is_passed_over_until_that_has_ended_or_it_has_waited_enough(
    store: Store, database_url: str
) -> None:
    issue_tasks(store, 3, "webhook")
    end = """
        UPDATE attribution_jobs j SET state = %(state)s, finished_at = now() FROM verdicts v
        JOIN interactions i ON i.id = v.interaction_pk WHERE v.id = j.verdict_id AND i.interaction_id = %(id)s
    """
    assert store.outbox.claim(TAKE) == ()
    rows(database_url, end, state="failed", id="id-2")
    assert told_of(store.outbox.claim(TAKE)) == ["id-2"]
    rows(database_url, end, state="done", id="id-1")
    assert told_of(store.outbox.claim(TAKE)) == ["id-1"]
    assert store.outbox.claim(TAKE) == ()
    assert told_of(store.outbox.claim(replace(TAKE, wait_s=0))) == ["id-0"]


def test_the_ends_before_the_first_sending_stay_and_only_who_holds_the_lease_may_send(
    store: Store, database_url: str
) -> None:
    issue_tasks(store, 2, "webhook")
    no_attribution(database_url)
    frozen = store.outbox.claim(TAKE)
    assert store.outbox.note_sending(frozen[:1], ENDS, 60) == frozen[:1]
    end_leases(store, database_url)
    woken = store.outbox.claim(replace(TAKE, owner="relay-2"))
    assert [event.sent_after for event in woken] == [ENDS, None]
    assert store.outbox.note_sending(frozen, ENDS, 60) == ()
    later = replace(ENDS, ends={0: 9, 11: 1})
    assert store.outbox.note_sending(woken, later, 60) == woken
    assert store.outbox.finish(frozen) == 0
    assert [store.leases.release(event) for event in woken] == [True, True]
    again = store.outbox.claim(TAKE)
    assert [event.sent_after for event in again] == [ENDS, later]
    assert [event.event_id for event in again] == [event.event_id for event in frozen]
    assert store.outbox.finish(again) == 2
    assert {event["state"] for event in rows(database_url, EVENTS)} == {"done"}


def test_a_task_on_an_answer_that_was_replaced_is_told_as_it_was_asked(store: Store, database_url: str) -> None:
    issue_tasks(store, 1, "webhook")
    no_attribution(database_url)
    rows(database_url, "UPDATE interactions SET is_current = false")
    rows(database_url, "UPDATE review_tasks SET round = 2")
    (event,) = store.outbox.claim(TAKE)
    assert event.task is not None
    assert (event.task.round, event.task.revision, event.task.event_id) == (1, 1, event.event_id)
    assert [sentence.index for sentence in event.task.sentences if sentence.asked] == [1, 3]


@pytest.mark.parametrize("page", [1, 2, 50])
def test_tasks_are_read_page_by_page_whatever_is_missing_between(store: Store, database_url: str, page: int) -> None:
    issue_tasks(store, 5, "webhook")
    rows(database_url, "UPDATE review_tasks SET state = 'labelled', closed_at = now() WHERE interaction_id = 'id-4'")
    rows(database_url, "DELETE FROM interactions WHERE interaction_id IN ('id-1', 'id-2')")

    def read(wanted: TaskFilter) -> list[str]:
        found = [task.interaction_id for task in store.review_tasks.all(wanted, page=page)]
        assert len(found) == len(set(found))
        return sorted(found)

    assert read(TaskFilter()) == ["id-0", "id-3"]
    assert store.review_tasks.count(TaskFilter()) == 4
    assert read(TaskFilter(app="other")) == []
    assert read(TaskFilter(states=("labelled",))) == ["id-4"]


def test_tasks_are_read_in_an_order_that_means_nothing_and_stays(store: Store, database_url: str) -> None:
    issue_tasks(store, 12, "webhook")
    found = [task.interaction_id for task in store.review_tasks.all(TaskFilter(), page=5)]
    created = [
        row["interaction_id"] for row in rows(database_url, "SELECT interaction_id FROM review_tasks ORDER BY id")
    ]
    assert sorted(found) == sorted(created)
    assert found not in (created, created[::-1])
    assert found == [task.interaction_id for task in store.review_tasks.all(TaskFilter(), page=3)]


def test_the_command_exports_what_somebody_has_still_to_read(store: Store, database_url: str, tmp_path: Path) -> None:
    issue_tasks(store, 3, "webhook")
    rows(database_url, "UPDATE review_tasks SET state = 'labelled', closed_at = now() WHERE interaction_id = 'id-1'")
    path = tmp_path / "tasks.jsonl"
    settings = {"GASP_DATABASE_URL": database_url, "GASP_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    command = [str(WORKER), "review", "export", "--format", "jsonl", "--since", "2026-01-01", str(path)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=90, check=True)
    assert done.stdout == f"wrote 2 tasks to {path}\n"
    tasks = [ReviewTask.model_validate_json(line) for line in path.read_bytes().splitlines()]
    assert sorted((task.interaction_id, task.event_id) for task in tasks) == [("id-0", None), ("id-2", None)]
