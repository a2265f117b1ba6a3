"""A traced application from its exporter's bytes to the rows, and its results back on the trace."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from tests.brokers import Broker
from tests.collector import collector
from tests.exchanges import exchange
from tests.traces import APP, message, spans, trace_id
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.sink import RecordSink

NUMBER = 1
# Said in the answer, and by no passage.
INVENTED = " Its founder Ilse Korman collected Brazilian stamps until 1962."


def send(deployment: Deployment, number: int, count: int = 9) -> list[tuple[int, int]]:
    """Send the spans of a trace a message each, the root first, over the partitions; the places of the messages."""
    with RecordSink(deployment.broker.bootstrap) as sink:
        sent = [sink.send(deployment.topic, message([one])) for one in reversed(spans(number, count, INVENTED))]
        sink.flush(60)
    places = [one.result() for one in sent]
    return sorted((place.partition, place.offset) for place in places)


@pytest.mark.kafka
def test_a_trace_becomes_rows_and_its_results_go_back_on_it(apache: Broker, database_url: str, tmp_path: Path) -> None:
    with collector() as (address, records):
        settings = {"trace_grace_s": 1, "export_otlp_url": address, "detector": "auto"}
        model = Path(resolve_model(PACKAGED_MODEL))
        deployment = Deployment(apache, database_url, model, tmp_path, partitions=3, settings=settings)
        places = send(deployment, NUMBER)
        with deployment.worker() as worker:
            attributed = "SELECT 1 FROM v_sentences WHERE attribution = 'supported'"
            wait_until(lambda: deployment.rows(attributed), what="supporting passages")
            wait_until(lambda: records, what="the results on the trace")
            assert worker.end(signal.SIGTERM) == 0
    logged = exchange(NUMBER)
    answer = f"{logged['answer']}{INVENTED}"
    (stored,) = deployment.rows("SELECT * FROM interactions")
    assert (stored["question"], stored["answer"], stored["app"]) == (logged["question"], answer, APP)
    assert stored["interaction_id"] == trace_id(NUMBER)
    assert sorted(_places(stored["sources"])) == places
    sentences = deployment.rows("SELECT * FROM v_sentences ORDER BY sentence_index")
    assert "".join(one["text"] for one in sentences).split() == answer.split()
    assert all(stored["answer"][one["start_char"] : one["end_char"]] == one["text"] for one in sentences)
    supported = {one["supporting_passage_id"] for one in sentences if one["attribution"] == "supported"}
    assert supported <= {"hours", "prices"}
    assert deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY outcome") == [
        {"outcome": "collected", "n": 9}
    ]
    _check_results(records, sentences)


def _places(sources: list[dict[str, object]]) -> Iterator[tuple[int, int]]:
    for one in sources:
        offsets = one["offsets"]
        assert isinstance(offsets, list)
        yield from ((int(str(one["partition"])), offset) for offset in offsets)


def _check_results(records: list[LogRecord], sentences: list[dict[str, object]]) -> None:
    """The answer's score and each flagged sentence are told on the root of the trace."""
    flagged = {one["sentence_index"] for one in sentences if one["flagged"]}
    assert flagged
    root = spans(NUMBER)[-1]
    told = [{one.key: one.value for one in record.attributes} for record in records]
    assert {(record.event_name, record.trace_id, record.span_id) for record in records} == {
        ("gen_ai.evaluation.result", root.trace_id, root.span_id)
    }
    assert {one["gasp.sentence.index"].int_value for one in told if "gasp.sentence.index" in one} == flagged
    (whole,) = (one for one in told if one["gen_ai.evaluation.name"].string_value == "grounding")
    scores = [float(str(one["score"])) for one in sentences if one["score"] is not None]
    assert whole["gen_ai.evaluation.score.value"].double_value == pytest.approx(min(scores))
