"""Traces in many messages, as instrumentors log them, and workers that die between any two steps."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from schemas.envelope import JsonObject
from tests.alike import assert_alike
from tests.bars import bar
from tests.brokers import Broker
from tests.dying_worker import dying_worker
from tests.forked import Forked
from tests.unit.traces.spans import json_bytes, proto_bytes, span
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.sink import RecordSink
from worker.embedded.databases import create_database, drop_database
from worker.settings.roles import Role

Deploy = Callable[..., Deployment]

KIND = "openinference.span.kind"
TRACES = 14
ROLES = (Role.CONSUME, Role.MAINTAIN)
STEPS = (
    "after Settlements.settle",
    "after Traces.claim",
    "before Traces.close",
    "after Traces.close",
)
ENDED = "SELECT trace_id, closed_by, outcome, reason, steps FROM v_traces WHERE state = 'closed' ORDER BY trace_id"
SAME = ("interactions", "passages", "sentences")


def spans(number: int) -> list[JsonObject]:
    """The spans of one trace; of every seventh the retriever's was lost."""
    question = {"input.value": f"How is tea {number} drunk?", "output.value": f"Tea number {number} is drunk hot here."}
    found: JsonObject = {
        "retrieval.documents.0.document.content": f"Tea {number} is drunk hot.",
        "retrieval.documents.0.document.id": f"tea-{number}",
    }
    logged = [
        span("root", None, 0, {KIND: "CHAIN", **question}),
        span("found", "root", 1, {KIND: "RETRIEVER", "input.value": "tea", **found}),
        span("said", "root", 3, {KIND: "LLM", "llm.model_name": "m-1", "output.value": question["output.value"]}),
        span("web", "said", 4, {"http.method": "GET"}),
    ]
    if number % 7 == 3:
        del logged[2]
    return [one | {"traceId": f"{number:032x}"} for one in logged]


def messages(seed: int, traces: int = TRACES) -> list[bytes]:
    """A span a message, in both encodings, in an order of their own, and some of them twice."""
    order = random.Random(seed)
    logged = [one for number in range(1, traces + 1) for one in spans(number)]
    values = [json_bytes(one) if order.random() < 0.5 else proto_bytes(one) for one in logged]
    values += order.sample(values, len(values) // 5)
    order.shuffle(values)
    return values


def closed(deployment: Deployment) -> list[dict[str, Any]]:
    return deployment.rows(ENDED)


def picture(deployment: Deployment) -> dict[str, Any]:
    whole = deployment.picture()
    return {name: whole[name] for name in SAME} | {"traces": closed(deployment)}


@pytest.fixture
def deploy_traces(deploy: Deploy, tansu: Broker) -> Callable[..., Deployment]:
    """What is complete is closed a second after its last piece, and what is not after four."""

    def make(*, partitions: int = 2, **more: object) -> Deployment:
        return deploy(tansu, partitions=partitions, trace_grace_s=1, trace_timeout_s=4, **more)

    return make


def test_workers_that_die_between_any_two_steps_leave_the_rows_of_an_undisturbed_run(
    deploy_traces: Callable[..., Deployment], postgres_server: str, template_database: str, tmp_path: Path
) -> None:
    sent = messages(1)
    undisturbed = deploy_traces()
    undisturbed.broker.send(undisturbed.topic, sent)
    with dying_worker(undisturbed.environment(), tmp_path / "undisturbed.log", ROLES):
        wait_until(lambda: len(closed(undisturbed)) == TRACES, what="every trace to be closed")
    expected = picture(undisturbed)
    assert {(row["closed_by"], row["outcome"]) for row in expected["traces"]} == {
        ("complete", "scored"),
        ("time_out", "scored"),
    }
    assert len(expected["interactions"]) == TRACES

    name = "traces_killed"
    killed = deploy_traces(database_url=create_database(postgres_server, name, template=template_database))
    killed.broker.send(killed.topic, sent)
    for step in STEPS:
        with dying_worker(killed.environment(), tmp_path / "killed.log", ROLES, step) as process:
            assert process.wait(90) == -signal.SIGKILL, f"{step}: not reached"
        # Its lease runs out, as it would after some minutes.
        killed.execute("UPDATE traces SET leased_until = now() - interval '1 second' WHERE state = 'running'")
    with dying_worker(killed.environment(), tmp_path / "killed.log", ROLES):
        wait_until(lambda: len(closed(killed)) == TRACES, what="every trace to be closed")
    found = picture(killed)
    drop_database(postgres_server, name)
    assert_alike(found, expected)


def test_two_workers_that_are_killed_again_and_again_tell_each_trace_once(
    deploy_traces: Callable[..., Deployment], tmp_path: Path
) -> None:
    traces, kills = int(bar(10_000, 40)), int(bar(10, 3))
    deployment = deploy_traces(partitions=12, batch_messages=16)
    sent = messages(2, traces)
    deployment.broker.send(deployment.topic, sent)
    log = tmp_path / "workers.log"

    def at_work() -> AbstractContextManager[Forked]:
        return dying_worker(deployment.environment(), log, ROLES)

    for number in range(1, kills + 1):
        with at_work(), at_work():
            # They are killed when so much was read, by the end of the context.
            reached = number * len(sent) // kills
            wait_until(lambda: deployment.count("ledger") >= reached, what="a part of the messages", deadline_s=600)  # noqa: B023 - called at once
    with at_work(), at_work():
        wait_until(lambda: len(closed(deployment)) == traces, what="every trace to be closed", deadline_s=600)
    lost = sum(number % 7 == 3 for number in range(1, traces + 1))
    assert Counter((row["closed_by"], row["outcome"]) for row in closed(deployment)) == {
        ("complete", "scored"): traces - lost,
        ("time_out", "scored"): lost,
    }
    told = deployment.rows("SELECT interaction_id, revision FROM interactions WHERE is_current ORDER BY 1")
    assert told == [{"interaction_id": f"{number:032x}", "revision": 1} for number in range(1, traces + 1)]
    assert deployment.count("interactions") == deployment.count("verdicts") == deployment.count("passages") == traces
    assert deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1") == [
        {"outcome": "collected", "n": len(sent)}
    ]
    with_sources = "SELECT count(*) AS n FROM interactions WHERE jsonb_array_length(sources) > 0"
    assert deployment.rows(with_sources) == [{"n": traces}]


def test_a_trace_that_was_refused_is_replayed_from_its_letter(
    deploy_traces: Callable[..., Deployment], tmp_path: Path
) -> None:
    deployment = deploy_traces()
    root, *rest = (json_bytes(one) for one in spans(1))
    deployment.broker.send(deployment.topic, rest)
    with RecordSink(deployment.broker.bootstrap) as sink:
        sink.send(deployment.topic, root, key=b"key", headers=(("content-type", b"application/json"),)).result(60)
    too_long = "ALTER TABLE interactions ADD CONSTRAINT ck_interactions_answer_short CHECK (length(answer) < 10)"
    deployment.execute(too_long)
    ended = "SELECT outcome, reason, late_pieces FROM v_traces WHERE state = 'closed'"
    with dying_worker(deployment.environment(), tmp_path / "worker.log", ROLES):
        wait_until(lambda: deployment.rows(ended), what="the trace to be refused")
        assert deployment.rows(ended) == [{"outcome": "dead_lettered", "reason": "store_rejected", "late_pieces": 0}]
        deployment.execute("ALTER TABLE interactions DROP CONSTRAINT ck_interactions_answer_short")
        replayed = deployment.run("dlq", "replay", "--reason", "store_rejected")
        assert replayed.returncode == 0, replayed.stderr
        scored = [{"outcome": "scored", "reason": None, "late_pieces": 1}]
        wait_until(lambda: deployment.rows(ended) == scored, what="the trace to be scored")
    assert deployment.count("interactions") == 1
