"""Messages that are too much for the machine: slow ones, and such as end the process that scores them."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

from schemas.dead_letter import DeadLetter, original_headers
from tests.acceptance.test_bad_inputs import letters_of
from tests.brokers import Broker
from tests.exchanges import exchange
from tests.faulty_worker import FATAL, doomed_worker, slow_worker
from tests.waiting import DEADLINE_S, wait_until
from tests.workers import Deployment
from worker.ingest.judging import MAX_ATTEMPTS

Deploy = Callable[..., Deployment]

MIB = 1024 * 1024
BOMB_BYTES = 200 * MIB
OUTCOMES = "SELECT outcome, reason, detail, count(*) AS n FROM ledger GROUP BY 1, 2, 3 ORDER BY 1"


def lives_until_settled(deployment: Deployment, messages: int, *, at_most: int) -> int:
    """How many workers it took until so many messages have their outcome: one is started after the other."""
    for lives in range(1, at_most + 1):
        with deployment.worker("consume", life=doomed_worker) as worker:

            def ended_or_done() -> bool:
                return worker.process.poll() is not None or deployment.count("ledger") >= messages

            wait_until(ended_or_done, what="an end", deadline_s=DEADLINE_S)
            if worker.process.poll() is None:
                return lives
            assert worker.process.returncode == -signal.SIGKILL
    raise AssertionError(f"{deployment.count('ledger')} of {messages} settled after {at_most} lives")


def test_a_batch_that_is_slower_than_the_timeout_is_no_hanging_one(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu, work_timeout_s=5)
    deployment.send(0, 2)
    with deployment.worker("consume", life=slow_worker) as worker:
        wait_until(
            lambda: deployment.count("ledger") == 2 or worker.process.poll() is not None,
            what="both messages",
            deadline_s=DEADLINE_S,
        )
        assert worker.process.poll() is None, worker.log.read_text()
        assert worker.events("wedged") == 0
    assert deployment.rows(OUTCOMES) == [{"outcome": "scored", "reason": None, "detail": None, "n": 2}]


def test_what_ends_the_worker_together_comes_back_in_smaller_batches(tansu: Broker, deploy: Deploy) -> None:
    deployment = deploy(tansu, batch_messages=16)
    deployment.send(0, 16)
    # 16 and 8 are too many, and four are read as one and three.
    assert lives_until_settled(deployment, 16, at_most=5) > 1
    assert deployment.rows(OUTCOMES) == [{"outcome": "scored", "reason": None, "detail": None, "n": 16}]


def test_a_message_that_ends_every_worker_is_a_dead_letter_and_its_neighbours_are_scored(
    tansu: Broker, deploy: Deploy
) -> None:
    deployment = deploy(tansu, batch_messages=2)
    values = [json.dumps(exchange(number)) for number in range(4)]
    fatal = exchange(9)
    fatal["answer"] = f"{fatal['answer']} It {FATAL}."
    values[1] = json.dumps(fatal)
    deployment.broker.send(deployment.topic, [value.encode() for value in values])
    assert lives_until_settled(deployment, 4, at_most=MAX_ATTEMPTS + 2) > MAX_ATTEMPTS
    assert deployment.rows(OUTCOMES) == [
        {"outcome": "dead_lettered", "reason": "scoring_failed", "detail": "WorkerEnded", "n": 1},
        {"outcome": "scored", "reason": None, "detail": None, "n": 3},
    ]
    (letter,) = letters_of(deployment, 1)
    assert letter.value == values[1].encode()


@pytest.mark.parametrize("stop", [signal.SIGTERM])
def test_stops_in_good_order_are_no_attempts(tansu: Broker, deploy: Deploy, stop: signal.Signals) -> None:
    deployment = deploy(tansu, work_timeout_s=60)
    deployment.send(0, 1)
    with deployment.worker("consume", life=slow_worker) as worker:
        begun = "partition_offsets WHERE batch_attempts > 0"
        wait_until(lambda: deployment.count(begun) > 0, what="the batch")
        worker.end(stop)
    assert deployment.count(begun) == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_message_that_grows_when_it_is_decompressed_takes_no_memory_and_is_a_dead_letter(
    tansu: Broker, deploy: Deploy, codec: str
) -> None:
    deployment = deploy(tansu)
    deployment.topic = tansu.create_topic(1, {"max.message.bytes": str(64 * MIB)})
    deployment.send(0, 1)
    with deployment.worker("consume,attribute") as worker:
        deployment.wait_settled(1)
        before = peak_bytes(worker.process.pid)
        producer = KafkaProducer(
            bootstrap_servers=tansu.bootstrap, compression_type=codec, max_request_size=2 * BOMB_BYTES, linger_ms=500
        )
        producer.send(deployment.topic, json.dumps(exchange(1)).encode())
        producer.send(deployment.topic, bytes(BOMB_BYTES), key=b"key", headers=[("name", b"value")])
        producer.send(deployment.topic, json.dumps(exchange(2)).encode())
        producer.close()
        deployment.wait_settled(4)
        grown = peak_bytes(worker.process.pid) - before
        assert worker.process.poll() is None
    booked = deployment.rows("SELECT outcome, reason, value_bytes FROM ledger ORDER BY record_offset")
    assert [row["outcome"] for row in booked] == ["scored", "scored", "dead_lettered", "scored"]
    assert (booked[2]["reason"], booked[2]["value_bytes"]) == ("too_large", BOMB_BYTES)
    (letter,) = letters_of(deployment, 1)
    facts = DeadLetter.from_headers(letter.headers)
    assert (facts.offset, facts.size_bytes, facts.value_attached) == (2, BOMB_BYTES, False)
    assert (letter.key, letter.value, original_headers(letter.headers)) == (b"key", None, (("name", b"value"),))
    # Snappy compresses least: what is fetched is 9 MiB, and is copied a few times.
    assert grown < BOMB_BYTES // 2


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])
