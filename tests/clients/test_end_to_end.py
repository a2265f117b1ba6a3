"""An instrumented LangChain chain, from its exporter to the rows in Postgres, and its results back on the trace."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from tests.brokers import Broker
from tests.clients.programs.content import ANSWER, APP, PASSAGES, QUESTION
from tests.clients.service import service
from tests.clients.test_clients import PYTHON, otlp, run
from tests.collector import collector
from tests.waiting import wait_until
from tests.workers import Deployment

pytestmark = pytest.mark.skipif(
    not PYTHON.is_file(), reason="the clients are not installed; make test-clients installs them"
)


@pytest.mark.kafka
def test_a_chain_that_is_traced_is_audited_and_told_its_results(
    apache: Broker, database_url: str, tmp_path: Path
) -> None:
    with service() as exporter:
        run(otlp("openinference_langchain", "retrieval_chain", "one by one"), exporter.url)
    with collector() as (address, records):
        settings = {"trace_grace_s": 1, "export_otlp_url": address, "detector": "auto"}
        model = Path(resolve_model(PACKAGED_MODEL))
        deployment = Deployment(apache, database_url, model, tmp_path, partitions=3, settings=settings)
        # The bytes of a request are what the exporter of a collector writes to Kafka.
        apache.send(deployment.topic, [one.value or b"" for one in exporter.messages])
        with deployment.worker() as worker:
            wait_until(lambda: records, what="the results on the trace")
            attributed = "SELECT 1 FROM v_sentences WHERE attribution = 'supported'"
            wait_until(lambda: deployment.rows(attributed), what="supporting passages")
            assert worker.end(signal.SIGTERM) == 0
    (stored,) = deployment.rows("SELECT * FROM interactions")
    assert (stored["question"], stored["answer"], stored["app"]) == (QUESTION, ANSWER, APP)
    sentences = deployment.rows("SELECT * FROM v_sentences ORDER BY sentence_index")
    assert [ANSWER[one["start_char"] : one["end_char"]].strip() for one in sentences] == [
        f"{text}." for text in ANSWER.rstrip(".").split(". ")
    ]
    supported = {one["supporting_passage_id"] for one in sentences if one["attribution"] == "supported"}
    assert supported <= {name for name, *_ in PASSAGES}
    assert {record.trace_id.hex() for record in records} == {stored["interaction_id"]}
