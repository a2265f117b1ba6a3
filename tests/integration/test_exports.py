"""Results go back to the systems that exchanges came from: at least once, under the same ids, until they are taken."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.integration.review_examples import review_settings
from tests.integration.store_examples import advance, answer_of, prepared, rows, scored
from worker.export.exporter import Exporter, destination
from worker.rules.exports import destinations
from worker.rules.settlement import Settlement
from worker.rules.verdict import Threshold
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.settings import read_settings
from worker.store.store import Store

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STATES = "SELECT state, attempts, last_error FROM result_exports ORDER BY id"
STOP_LOOK_S = 0.02


@dataclass
class Receiver:
    """A server that answers posts with these statuses in turn, the last again and again; a GET shows the bodies."""

    statuses: list[int]
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    receiver = Receiver(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
            receiver.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(status)
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[" + b",".join(body for _, _, body in receiver.posts[:1]) + b"]")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(STOP_LOOK_S,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings_for(name: str, url: str) -> dict[str, Any]:
    extra = {
        "otlp": {"export_otlp_headers": "x-tenant=acme"},
        "langfuse": {"export_langfuse_public_key": "pk", "export_langfuse_secret_key": "sk"},
        "langsmith": {"export_langsmith_api_key": "key"},
        "mlflow": {"export_mlflow_token": "t0ken"},
    }
    return {f"export_{name}_url": f"{url}/v1/logs" if name == "otlp" else url, **extra[name]}


@contextmanager
def exporter(store: Store, database_url: str, name: str, url: str) -> Iterator[Exporter]:
    settings = review_settings(database_url, **settings_for(name, url))
    made = Exporter(
        name,
        destination(settings, name),
        exports=store.exports,
        leases=store.leases,
        owner="exporter",
        stop=Stop(),
        telemetry=Telemetry(),
        within_s=60,
    )
    yield made
    made.close()


def traced(offset: int, scores: Sequence[float | None], threshold: Threshold, names: tuple[str, ...]) -> Settlement:
    """An answer of a trace, to be sent to these systems."""
    settled = scored(offset, f"i-{offset}", scores, threshold)
    assert settled.decoded is not None
    metadata = {"trace_id": TRACE, "span_id": SPAN}
    logged = settled.decoded.interaction.model_copy(update={"metadata": metadata})
    return replace(settled, decoded=replace(settled.decoded, interaction=logged), exports=names)


@pytest.fixture
def one_answer(store: Store) -> Callable[[str], None]:
    """Stores an answer of three sentences, the second of which is flagged, to be sent to a system."""

    def stored(name: str) -> None:
        scorer_id, threshold = prepared(store)
        store.settlements.settle(scorer_id, [traced(0, [0.9, -0.5, None], threshold, (name,))], [advance(0, 1)])

    return stored


def due_now(database_url: str) -> None:
    rows(database_url, "UPDATE result_exports SET run_after = now() WHERE state = 'waiting'")


def flagged_text() -> str:
    return answer_of(2)[len(answer_of(1)) :].strip()


def test_opentelemetry_gets_events_on_the_span(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("otlp")
    with receiving(200) as receiver, exporter(store, database_url, "otlp", receiver.url) as sender:
        assert sender.run_once()
        assert not sender.run_once()
    ((path, headers, body),) = receiver.posts
    assert (path, headers["content-type"], headers["x-tenant"]) == ("/v1/logs", "application/x-protobuf", "acme")
    (resource,) = ExportLogsServiceRequest.FromString(body).resource_logs
    whole, sentence = resource.scope_logs[0].log_records
    for record in (whole, sentence):
        assert (record.event_name, record.trace_id.hex(), record.span_id.hex()) == (
            "gen_ai.evaluation.result",
            TRACE,
            SPAN,
        )
    facts = {one.key: one.value for one in sentence.attributes}
    assert facts["gen_ai.evaluation.name"].string_value == "grounding.sentence"
    assert facts["gen_ai.evaluation.score.value"].double_value == -0.5
    assert facts["gen_ai.evaluation.score.label"].string_value == "flagged"
    assert flagged_text() in facts["gen_ai.evaluation.explanation"].string_value
    assert facts["gasp.sentence.index"].int_value == 1
    assert {one.key: one.value for one in whole.attributes}["gen_ai.evaluation.score.value"].double_value == -0.5
    assert rows(database_url, STATES) == [{"state": "done", "attempts": 1, "last_error": None}]


def test_langfuse_gets_scores_of_the_observation(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("langfuse")
    with receiving(200) as receiver, exporter(store, database_url, "langfuse", receiver.url) as sender:
        sender.run_once()
    assert {path for path, _, _ in receiver.posts} == {"/api/public/scores"}
    assert receiver.posts[0][1]["authorization"] == f"Basic {base64.b64encode(b'pk:sk').decode()}"
    whole, sentence = (json.loads(body) for _, _, body in receiver.posts)
    assert (whole["traceId"], whole["observationId"], whole["name"]) == (TRACE, SPAN, "grounding")
    assert (whole["value"], whole["dataType"], sentence["metadata"]["sentence"]) == (-0.5, "NUMERIC", 1)
    assert sentence["id"] != whole["id"]


def test_langsmith_gets_feedback_on_the_run_and_a_repeat_is_taken_for_what_it_is(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("langsmith")
    with receiving(409) as receiver, exporter(store, database_url, "langsmith", receiver.url) as sender:
        sender.run_once()
    assert [(path, headers["x-api-key"]) for path, headers, _ in receiver.posts] == [("/feedback", "key")] * 2
    whole = json.loads(receiver.posts[0][2])
    assert (whole["run_id"], whole["trace_id"], whole["key"], whole["score"]) == (SPAN, TRACE, "grounding", -0.5)
    assert rows(database_url, STATES)[0]["state"] == "done"


def test_mlflow_gets_assessments_and_none_twice(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("mlflow")
    with receiving(200, 503, 200) as receiver, exporter(store, database_url, "mlflow", receiver.url) as sender:
        sender.run_once()
        due_now(database_url)
        sender.run_once()
    assert {path for path, _, _ in receiver.posts} == {f"/api/3.0/mlflow/traces/{TRACE}/assessments"}
    assert receiver.posts[0][1]["authorization"] == "Bearer t0ken"
    told = [json.loads(body)["assessment"] for _, _, body in receiver.posts]
    assert [one["assessment_name"] for one in told] == ["grounding", "grounding.sentence.1", "grounding.sentence.1"]
    assert (told[0]["source"]["source_type"], told[0]["feedback"]) == ("CODE", {"value": -0.5})
    assert rows(database_url, STATES) == [{"state": "done", "attempts": 2, "last_error": "status 503"}]


def test_what_may_heal_is_tried_again_under_the_same_ids(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("langfuse")
    with receiving(200, 429, 200) as receiver, exporter(store, database_url, "langfuse", receiver.url) as sender:
        sender.run_once()
        assert rows(database_url, STATES) == [{"state": "waiting", "attempts": 1, "last_error": "status 429"}]
        assert not sender.run_once()
        due_now(database_url)
        assert sender.run_once()
    ids = [json.loads(body)["id"] for _, _, body in receiver.posts]
    assert ids[:2] == ids[2:]
    assert rows(database_url, STATES)[0]["state"] == "done"


@pytest.mark.parametrize("status", [400, 401, 302])
def test_a_refusal_is_given_up_with_its_status(
    store: Store, database_url: str, one_answer: Callable[[str], None], status: int
) -> None:
    one_answer("langfuse")
    with receiving(status) as receiver, exporter(store, database_url, "langfuse", receiver.url) as sender:
        sender.run_once()
    assert len(receiver.posts) == 1
    assert rows(database_url, STATES) == [{"state": "failed", "attempts": 1, "last_error": f"status {status}"}]


def test_a_server_that_is_away_is_tried_again(
    store: Store, database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("langfuse")
    with receiving(200) as receiver:
        url = receiver.url
    with exporter(store, database_url, "langfuse", url) as sender:
        sender.run_once()
    assert rows(database_url, STATES) == [{"state": "waiting", "attempts": 1, "last_error": "ConnectError"}]


def test_an_answer_that_was_removed_goes_with_what_was_to_be_sent_of_it(
    database_url: str, one_answer: Callable[[str], None]
) -> None:
    one_answer("langfuse")
    rows(database_url, "DELETE FROM interactions RETURNING id")
    assert rows(database_url, STATES) == []


def test_the_same_content_again_is_sent_once(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    first, again = traced(0, [0.9], threshold, ("otlp",)), traced(0, [0.9], threshold, ("otlp",))
    store.settlements.settle(scorer_id, [first], [advance(0, 1)])
    store.settlements.settle(scorer_id, [replace(again, record=replace(again.record, offset=1))], [advance(1, 2)])
    assert len(rows(database_url, STATES)) == 1


@pytest.mark.parametrize(
    ("adapter", "trace_id", "found"),
    [
        ("otlp", TRACE, ("otlp", "langfuse")),
        ("langfuse_events", TRACE, ("otlp", "langfuse")),
        ("langfuse_events", "my-own-id", ("langfuse",)),
        ("langsmith", "0b53a1c2-93e4-4c5b-8d1f-2f2c8d1e6a10", ("langsmith",)),
        ("mlflow", f"tr-{TRACE}", ("mlflow",)),
        ("flat", TRACE, ("otlp", "langfuse")),
        ("flat", "42", ()),
        ("flat", None, ()),
        ("flat", 42, ()),
    ],
)
def test_results_go_where_the_trace_is_known(adapter: str, trace_id: object, found: tuple[str, ...]) -> None:
    everywhere = ("otlp", "langfuse", "langsmith", "mlflow")
    assert destinations(adapter, {"trace_id": trace_id}, everywhere) == found
    assert destinations(adapter, {"trace_id": trace_id}, ()) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"export_langfuse_url": "https://langfuse"},
        {"export_langfuse_public_key": "pk"},
        {"export_langsmith_url": "https://smith"},
        {"export_otlp_url": "http://collector:4318/v1/logs"},
        {"export_otlp_headers": "a=b"},
        {"export_otlp_url": "https://c/v1/logs", "export_otlp_headers": "nothing"},
        {"export_mlflow_token": "t"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(Exception, match="GASP_EXPORT_"):
        read_settings(database_url="postgresql://db/x", kafka_bootstrap_servers="b:1", **wrong)
