"""The commands, as an operator types them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.exchanges import write_exchanges
from tests.workers import Deployment

Deploy = Callable[..., Deployment]


def test_an_empty_set_up_becomes_a_working_one_by_its_commands(
    tansu: Broker, deploy: Deploy, empty_database_url: str, tmp_path: Path
) -> None:
    deployment = deploy(tansu, database_url=empty_database_url)
    deployment.topic = f"new-{deployment.topic}"
    deployment.dead_letter_topic = f"new-{deployment.dead_letter_topic}"
    before = deployment.run("check")
    assert before.returncode == 1
    assert "loading the model" in before.stderr
    assert "gasp-worker topics" in before.stdout
    assert "gasp-worker migrate" in before.stdout

    assert deployment.run("migrate").stdout.startswith("the database is at revision 0")
    assert "created" in deployment.run("topics", "--partitions", "3").stdout
    assert "exists" in deployment.run("topics", "--partitions", "3").stdout
    after = deployment.run("check")
    assert (after.returncode, after.stdout.count("ok  ")) == (0, 4)
    assert "has 3 partitions" in after.stdout

    file = write_exchanges(tmp_path / "in.jsonl", 9, "not json")
    assert "sent 10 messages" in deployment.run("replay", str(file)).stdout
    assert json.loads(deployment.run("status", "--json").stdout)["lag"] == 10
    with deployment.worker():
        deployment.wait_settled(10)
    status = json.loads(deployment.run("status", "--json").stdout)
    assert status["lag"] == 0
    assert status["outcomes"] == {"scored": 9, "dead_lettered:invalid_json": 1}
    assert sum(partition["next_offset"] or 0 for partition in status["partitions"]) == 10
    text = deployment.run("status").stdout
    assert "0 messages wait" in text
    assert "dead_lettered:invalid_json" in text


def test_check_names_every_part_that_is_wrong(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(
        tansu,
        database_url="postgresql+psycopg://nobody:s3cret@127.0.0.1:1/none",
        model="no/such-model",
        kafka_bootstrap_servers="127.0.0.1:1",
    )
    done = deployment.run("check")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert [line.split(":")[0] for line in lines] == ["ok   settings", "FAIL broker", "FAIL database", "FAIL model"]
    assert "s3cret" not in done.stdout + done.stderr
    for line, setting in zip(
        lines[1:], ("GASP_KAFKA_BOOTSTRAP_SERVERS", "GASP_DATABASE_URL", "GASP_MODEL"), strict=True
    ):
        assert setting in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--roles", "dance"), "dance"),
        (("replay", "no-such-file.jsonl"), "no-such-file.jsonl: no such file"),
        (("demo", "--input", "no-such-file.jsonl"), "no-such-file.jsonl: no such file"),
    ],
)
def test_a_wrong_argument_is_named(tansu: Broker, deploy: Deploy, arguments: tuple[str, ...], message: str) -> None:
    done = deploy(tansu).run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_wrong_setting_stops_the_start_and_is_named(tansu: Broker, deploy: Deploy) -> None:
    done = deploy(tansu, batch_messages=0).run("run")
    assert (done.returncode, done.stderr.splitlines()[-1].split(":")[:2]) == (
        2,
        ["gasp-worker", " GASP_BATCH_MESSAGES"],
    )


def test_auto_does_not_change_the_detector_of_a_database_in_silence(tansu: Broker, deploy: Deploy) -> None:
    judged = deploy(tansu, detector="jsd")
    judged.send(0, 2)
    with judged.worker() as worker:
        judged.wait_settled(2)
        worker.end(signal.SIGTERM)
    done = deploy(tansu, detector="auto").run("run")
    assert done.returncode == 2
    assert "GASP_DETECTOR: auto would now judge by fused-free" in done.stderr.splitlines()[-1]
    assert "by jsd: set GASP_DETECTOR=jsd" in done.stderr.splitlines()[-1]
    checked = deploy(tansu, detector="auto").run("check")
    assert checked.returncode == 1
    assert "FAIL model: GASP_DETECTOR: auto would now judge by fused-free" in checked.stdout
    # Once said, it is done.
    chosen = deploy(tansu, detector="gap")
    chosen.send(0, 1)
    with chosen.worker():
        chosen.wait_settled(3)
