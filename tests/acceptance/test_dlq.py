"""A few messages among many cannot be used: each is found, what can be repaired is repaired, and it is replayed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from schemas.reject_reason import RejectReason
from schemas.replay import Replay
from tests.bars import bar
from tests.brokers import Broker
from tests.exchanges import exchange, write_exchanges
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.scan import TopicScan
from worker.rules.records import Record

GOOD = bar(200, 50)
LARGE_ID = "museum-of-large-things"
LARGE = json.dumps({**exchange(1), "interaction_id": LARGE_ID, "metadata": {"plan": "x" * 20_000}})
POISON = ("not json", "[1, 2]")


LATE_ID = "museum-that-was-asked-twice"


def consume(deployment: Deployment, messages: int) -> None:
    """Run a worker until so many messages have their outcome."""
    with deployment.worker("consume"):
        wait_until(lambda: deployment.count("ledger") >= messages, what=f"{messages} ledger rows")


def histories(deployment: Deployment) -> list[Replay]:
    """What the replayed messages in the topic say of their past."""
    scan = TopicScan(deployment.broker.bootstrap, deployment.topic)
    found = [Replay.from_headers(item.headers) for item in scan if isinstance(item, Record)]
    return [history for history in found if history]


def test_what_was_too_large_is_scored_after_the_limit_is_raised_and_what_is_broken_dies_again(
    broker: Broker, deploy: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = deploy(broker, max_message_bytes=4096, batch_messages=64)
    deployment.replay(write_exchanges(tmp_path / "in.jsonl", GOOD, *POISON, LARGE))
    consume(deployment, GOOD + 3)
    counted = [json.loads(line) for line in deployment.run("dlq", "list", "--summary", "--json").stdout.splitlines()]
    assert {(one["reason"], one["letters"]) for one in counted} == {
        ("invalid_json", 1),
        ("not_an_object", 1),
        ("too_large", 1),
    }
    (large,) = (one for one in counted if one["reason"] == "too_large")
    assert LARGE_ID in deployment.run("dlq", "show", large["example"]).stdout

    refused = deployment.run("dlq", "replay", "--reason", "too_large")
    assert (refused.returncode, refused.stdout.splitlines()[0]) == (1, f"sent 0 to {deployment.topic}")
    deployment.settings = {**deployment.settings, "max_message_bytes": 100_000}
    assert deployment.run("dlq", "replay", "--reason", "too_large").stdout == f"sent 1 to {deployment.topic}\n"
    # Too much, which does no harm: what is stored by then is a duplicate. What is broken gets a letter that says so.
    assert deployment.run("dlq", "replay", "--all").stdout == f"sent 3 to {deployment.topic}\n"
    consume(deployment, GOOD + 7)
    assert deployment.rows("SELECT app FROM v_interactions WHERE interaction_id = %s", LARGE_ID) == [{"app": "museums"}]
    reasons = Counter((history.count, history.reason) for history in histories(deployment))
    assert reasons == {
        (1, RejectReason.TOO_LARGE): 2,
        (1, RejectReason.INVALID_JSON): 1,
        (1, RejectReason.NOT_AN_OBJECT): 1,
    }
    outcomes = deployment.rows("SELECT outcome, reason, count(*) AS n FROM ledger GROUP BY 1, 2")
    assert {(one["outcome"], one["reason"]): one["n"] for one in outcomes} == {
        ("scored", None): GOOD + 1,
        ("skipped", "duplicate"): 1,
        ("dead_lettered", "too_large"): 1,
        ("dead_lettered", "invalid_json"): 2,
        ("dead_lettered", "not_an_object"): 2,
    }
    letters = [json.loads(line) for line in deployment.run("dlq", "list", "--json").stdout.splitlines()]
    replays = Counter(letter["replay"]["count"] if letter["replay"] else 0 for letter in letters)
    assert replays == {0: 3, 1: 2}


def test_an_older_answer_that_is_replayed_does_not_replace_the_newer_one(
    broker: Broker, deploy: Callable[..., Deployment]
) -> None:
    deployment = deploy(broker, max_message_bytes=4096)
    # Neither says when it was given: the order in the topic tells, which a replay must not turn round.
    older = {**exchange(1), "interaction_id": LATE_ID, "metadata": {"plan": "x" * 20_000}}
    newer = {**exchange(2), "interaction_id": LATE_ID}
    deployment.broker.send(deployment.topic, [json.dumps(row).encode() for row in (older, newer)])
    consume(deployment, 2)
    deployment.settings = {**deployment.settings, "max_message_bytes": 100_000}
    assert deployment.run("dlq", "replay", "--all").stdout == f"sent 1 to {deployment.topic}\n"
    consume(deployment, 3)
    kept = deployment.rows("SELECT answer, is_current FROM interactions ORDER BY revision")
    assert [(row["answer"], row["is_current"]) for row in kept] == [(newer["answer"], True), (older["answer"], False)]
    assert deployment.rows("SELECT answer FROM v_interactions") == [{"answer": newer["answer"]}]
