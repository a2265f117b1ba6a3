"""A model that nothing was learned from goes the whole way: standardised, then by a readout of its own."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gasp_core.cli import app as gasp
from tests.brokers import Broker
from tests.labelled_answers import PASSAGES, labelled_row, labelled_rows, write_rows
from tests.models import TEXT, save_model
from tests.waiting import wait_until
from tests.workers import Deployment

Deploy = Callable[..., Deployment]

# Each of them has a grounded sentence, and every second one an invented one: a few more than calibration needs.
ANSWERS = 70
MORE = 10
# As the hourly job would find it after a day with few sentences of the most different scores: every one is asked about.
USUAL_DAY = """
INSERT INTO review_paces (app, scorer_id, expected_flagged, expected_sampled, spread)
SELECT 'museum', id, 1, 1, 1000 FROM scorers
"""
NEWEST = """
SELECT s.label, s.id FROM verdicts v JOIN scorers s ON s.id = v.scorer_id
JOIN interactions i ON i.id = v.interaction_pk WHERE i.interaction_id = %s ORDER BY v.id DESC LIMIT 1
"""
LABELLED = """
INSERT INTO review_label_entry (app, interaction_id, revision, sentence_index, label, reviewer)
SELECT t.app, t.interaction_id, t.revision, q.sentence_index,
    CASE strpos(substr(i.answer, q.start_char + 1, q.end_char - q.start_char), 'café')
        WHEN 0 THEN 'supported' ELSE 'unsupported' END,
    'rose'
FROM review_tasks t JOIN review_sentences q ON q.task_pk = t.id JOIN interactions i ON i.id = t.interaction_pk
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that was trained for some steps, as nobody else's was."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = save_model(tmp_path_factory.mktemp("checkpoint") / "own")
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    steps = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for _ in range(10):
        steps.zero_grad()
        network(input_ids=ids, labels=ids).loss.backward()
        steps.step()
    network.save_pretrained(folder)
    return folder


def logged(number: int) -> bytes:
    row = labelled_row(number, invented=number % 2 == 0)
    exchange = {"interaction_id": f"museum-{number}", "app": "museum", "question": row["query"]}
    return json.dumps(exchange | {"passages": PASSAGES, "answer": row["answer"]}).encode()


@contextmanager
def judging(deployment: Deployment, first: int, count: int) -> Iterator[None]:
    """A worker that has judged so many more answers."""
    with deployment.worker("consume,attribute") as worker:
        wait_until(lambda: worker.events("started"), what="the start")
        yield
        deployment.broker.send(deployment.topic, [logged(number) for number in range(first, first + count)])
        deployment.wait_settled(first + count)
        assert worker.end(signal.SIGTERM) == 0


def newest(deployment: Deployment, number: int) -> dict[str, Any]:
    """The scorer of the newest verdict on an answer."""
    return deployment.rows(NEWEST, f"museum-{number}")[0]


def recalibrated(deployment: Deployment, scorer_id: int) -> list[dict[str, Any]]:
    """The versions that the labels became for a scorer."""
    done = deployment.run("recalibrate")
    assert done.returncode == 0, done.stderr
    return deployment.rows(
        "SELECT app, flag_below FROM thresholds WHERE learned_from = 'calibrated' AND scorer_id = %s", scorer_id
    )


def test_a_model_of_ones_own_is_standardised_gets_a_readout_and_learns_its_thresholds(
    tansu: Broker, deploy: Deploy, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    deployment = deploy(tansu, detector="auto", model=checkpoint)
    policy = ("review", "policy", "--daily-sentences", "100000", "--sampled-share", "0.5")
    assert deployment.run(*policy).returncode == 0

    with judging(deployment, 0, ANSWERS):
        deployment.execute(USUAL_DAY)
    standardised = newest(deployment, 0)
    assert standardised["label"].endswith(" gasp-3 fused-free-1-ref-1")
    checked = deployment.run("check")
    assert standardised["label"] in checked.stdout
    means = deployment.rows("SELECT strpos(text, 'café') > 0 AS bad, avg(score) AS score FROM v_sentences GROUP BY 1")
    score = {row["bad"]: row["score"] for row in means}
    assert score[True] < score[False]
    deployment.execute(LABELLED)
    assert recalibrated(deployment, standardised["id"])

    # A readout of its own, and one that the database's labels are in, too.
    data = write_rows(tmp_path / "data.jsonl", labelled_rows(120))
    own, both = tmp_path / "own.safetensors", tmp_path / "both.safetensors"
    arguments = ["train", str(data), "--out", str(own), "--model", str(checkpoint), "--device", "cpu"]
    trained = CliRunner().invoke(gasp, arguments)
    assert trained.exit_code == 0, trained.output
    fitted = deployment.run("fit-detector", str(data), "--out", str(both))
    assert fitted.returncode == 0, fitted.stderr
    asked = deployment.count("v_review_consensus")
    assert f"{asked} labelled sentences of {ANSWERS} answers in the database\n" in fitted.stdout
    assert f"labels: {asked} sentences of {ANSWERS} sources" in fitted.stdout
    assert both.read_bytes() != own.read_bytes()

    deployment.settings = {**deployment.settings, "detector_file": own}
    with judging(deployment, ANSWERS, MORE):
        by_readout = deployment.rows("SELECT label, id FROM scorers ORDER BY id DESC LIMIT 1")[0]
        assert by_readout["label"].startswith(standardised["label"].split(" fused-free")[0])
        assert " readout-" in by_readout["label"]
        assert deployment.run("rescore", "--scorer", str(by_readout["id"]), "--since", "2020-01-01").returncode == 0
        wait_until(lambda: not deployment.count("rescore_jobs WHERE state <> 'done'"), what="the stored answers")
    assert newest(deployment, 0) == newest(deployment, ANSWERS) == by_readout
    assert recalibrated(deployment, by_readout["id"])
