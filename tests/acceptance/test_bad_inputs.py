"""Everything that loggers should not send and do: each message has its named outcome, and the good ones are scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from schemas.dead_letter import DeadLetter, original_headers
from tests.brokers import Broker
from tests.exchanges import exchange
from tests.fixtures.bad_inputs import BAD_INPUTS, MAX_MESSAGE_BYTES, BadInput, encode, row
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.broker.sink import RecordSink
from worker.rules.records import Record

LONG_CONTEXT = " ".join(f"Room {number} of the museum opens at nine." for number in range(6_000))
LONG_ANSWER = "The amplifier is under warranty for 30 months. " * 400

# The two that need a window: decided by the scorer, said on the row.
LONG_INPUTS = (
    BadInput("context-of-60000-tokens", encode(row("long-context", passages=[LONG_CONTEXT])), "scored"),
    BadInput("answer-past-the-window", encode(row("long-answer", answer=LONG_ANSWER)), "scored"),
)

Deploy = Callable[..., Deployment]


@contextmanager
def sent_inputs(deployment: Deployment, inputs: list[BadInput]) -> Iterator[dict[int, BadInput]]:
    """Send each input with a good message after it; gives the inputs by offset."""
    by_offset: dict[int, BadInput] = {}
    with RecordSink(deployment.broker.bootstrap) as sink:
        for number, item in enumerate(inputs):
            place = sink.send(deployment.topic, item.value, key=item.name.encode(), headers=item.headers)
            by_offset[place.result(30).offset] = item
            sink.send(deployment.topic, json.dumps(exchange(number)).encode())
        sink.flush(30)
    yield by_offset


def letters_of(deployment: Deployment, count: int) -> list[Record]:
    """What is in the dead-letter topic, once so many letters are there."""
    letters: list[Record] = []
    source = deployment.broker.source(deployment.dead_letter_topic)

    def read() -> bool:
        letters.extend(source.poll(0.1, 500))
        for partition in source.take_rebalance().assigned:
            source.seek(partition, 0)
            source.resume([partition])
        return len(letters) >= count

    try:
        wait_until(read, what=f"{count} dead letters")
        return letters
    finally:
        source.close()


def test_every_bad_input_has_its_named_outcome_and_the_good_ones_between_are_scored(
    tansu: Broker, deploy: Deploy
) -> None:
    deployment = deploy(tansu, max_message_bytes=MAX_MESSAGE_BYTES, batch_messages=32)
    inputs = [*BAD_INPUTS, *LONG_INPUTS]
    with sent_inputs(deployment, inputs) as by_offset, deployment.worker() as worker:
        deployment.wait_settled(2 * len(inputs))
        assert worker.process.poll() is None
    ledger = {one["record_offset"]: one for one in deployment.rows("SELECT * FROM ledger")}
    assert len(ledger) == 2 * len(inputs)

    outcomes = {by_offset[offset].name: outcome_of(one) for offset, one in ledger.items() if offset in by_offset}
    assert outcomes == {item.name: item.outcome for item in inputs}
    assert {outcome_of(one) for offset, one in ledger.items() if offset not in by_offset} == {"scored"}

    dead = {item.name: item for item in inputs if item.is_dead_letter}
    letters = letters_of(deployment, len(dead))
    assert sorted((letter.key or b"").decode() for letter in letters) == sorted(dead)
    for letter in letters:
        check_letter(letter, dead[(letter.key or b"").decode()], by_offset)

    assert_no_text_in(worker.log.read_text(encoding="utf-8"))
    facts = {
        one["interaction_id"]: one
        for one in deployment.rows("SELECT * FROM v_interactions WHERE interaction_id LIKE 'long-%%'")
    }
    assert facts["long-context"]["context_windows"] > 1
    assert not facts["long-context"]["context_truncated"]
    assert facts["long-answer"]["answer_truncated"]
    reasons = deployment.rows(
        "SELECT skip_reason, count(*) AS n FROM v_sentences WHERE interaction_id = 'long-answer' GROUP BY 1"
    )
    assert {one["skip_reason"] for one in reasons} == {None, "past_window"}
    assert sum(one["n"] for one in reasons) == 400


def outcome_of(ledger_row: dict[str, object]) -> str:
    """The ledger's words as the fixtures write them."""
    if ledger_row["outcome"] == "skipped":
        return f"skipped:{ledger_row['reason']}"
    return str(ledger_row["reason"] or ledger_row["outcome"])


def check_letter(letter: Record, item: BadInput, by_offset: dict[int, BadInput]) -> None:
    """The letter says why and where from, and brings the bytes and headers that were sent."""
    facts = DeadLetter.from_headers(letter.headers)
    assert facts.reason == item.outcome
    assert by_offset[facts.offset] is item
    # kafka-python cannot send a null header.
    assert original_headers(letter.headers) == tuple((name, value or b"") for name, value in item.headers)
    if facts.value_attached:
        assert letter.value == item.value
    else:
        assert item.value is None or len(item.value) > MAX_MESSAGE_BYTES


def assert_no_text_in(log: str) -> None:
    for fragment in ("amplifier", "warranty", "Brellow", "museum of", "penguins"):
        assert fragment not in log


@pytest.mark.parametrize("missing", ["topic", "table"])
def test_a_worker_that_is_not_set_up_says_what_to_run(tansu: Broker, deploy: Deploy, missing: str) -> None:
    deployment = deploy(tansu)
    if missing == "topic":
        deployment.topic = "no-such-topic"
    else:
        deployment.execute("DROP TABLE schema_revisions, alembic_version")
    done = deployment.run("run")
    assert done.returncode == 2
    assert {"topic": "gasp-worker topics", "table": "gasp-worker migrate"}[missing] in done.stderr.splitlines()[-1]
