"""Traces in many messages, as instrumentors log them, and workers that die between any two steps."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.envelope import JsonObject
from tests.alike import assert_alike
from tests.brokers import Broker
from tests.dying_worker import dying_worker
from tests.unit.traces.spans import json_bytes, proto_bytes, span
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.embedded.databases import create_database, drop_database
from worker.settings.roles import Role

Deploy = Callable[..., Deployment]

KIND = "openinference.span.kind"
TRACES = 14
ROLES = (Role.CONSUME, Role.MAINTAIN)
STEPS = (
    "before Settlements.settle",
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


def messages(seed: int) -> list[bytes]:
    """A span a message, in both encodings, in an order of their own, and some of them twice."""
    order = random.Random(seed)
    logged = [one for number in range(1, TRACES + 1) for one in spans(number)]
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
    """On two partitions; what is complete is closed a second after its last piece, and what is not after four."""

    def make(**more: object) -> Deployment:
        return deploy(tansu, partitions=2, trace_grace_s=1, trace_timeout_s=4, trace_open_per_app=1000, **more)

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
