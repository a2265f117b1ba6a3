"""Answers that people are asked about, and what the outbox holds of them."""

from __future__ import annotations

from typing import Any

from tests.integration.store_examples import advance, prepared, rows, scored, selected
from worker.settings.settings import Settings, read_settings
from worker.store.store import Store

GAPS = [0.9, -0.2, None, 0.05]
ASKED = [1, 3]
SECRET = "a secret of thirty-two characters"

EVENTS = "INSERT INTO outbox (task_pk, channel, round) SELECT id, %(channel)s, round FROM review_tasks ORDER BY id"
EVENTS = "SELECT event_id::text, state, attempts, last_error, sent_after FROM outbox ORDER BY id"


def issue_tasks(store: Store, answers: int, channel: str) -> None:
    """So many stored answers, each with a task and an event on the channel."""
    scorer_id, threshold = prepared(store)
    batch = [
        selected(scored(number, f"id-{number}", GAPS, threshold), indexes=ASKED, probability=0.25, channels=(channel,))
        for number in range(answers)
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, answers)])


def no_attribution(url: str) -> None:
    """Nothing is to wait for."""
    rows(url, "UPDATE attribution_jobs SET state = 'done', finished_at = now()")


def end_leases(store: Store, url: str) -> None:
    """As if the time of every lease were over."""
    rows(url, "UPDATE outbox SET leased_until = now() - interval '1 second' WHERE state = 'running'")
    store.leases.reap()


def review_settings(url: str, bootstrap: str = "127.0.0.1:1", **overrides: Any) -> Settings:
    """Settings that nothing of the environment gets into."""
    return read_settings(database_url=url, kafka_bootstrap_servers=bootstrap, **{"detector": "gap"} | overrides)
