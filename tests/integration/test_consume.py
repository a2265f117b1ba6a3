"""The poll loop on a real broker and database, with a scorer that waits at a gate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest
from structlog.testing import capture_logs

from gasp_core.detectors.two_pass import GAP
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.model import LanguageModel, load_model
from gasp_core.scorer import GroundingScorer
from tests.bars import bar
from tests.brokers import Broker
from tests.exchanges import exchange
from tests.models import save_model
from tests.waiting import wait_until
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.ingest.consume import Consumer
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.judging import Judging
from worker.ingest.placement import Placement
from worker.ingest.scoring import Scoring
from worker.ingest.settle import Ingest
from worker.rules.claims import Claim, Position
from worker.rules.records import Record
from worker.rules.settlement import Advance, Outcome, Settled, Settlement
from worker.runtime.engine import Engine
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.service import register
from worker.store.store import Store, open_store

MESSAGES = 12
BATCH = 4
POLL_INTERVAL_S = bar(10, 5)
BATCH_S = bar(45, 12)


class GatedScorer(GroundingScorer):
    """Scores as it should, once the gate is open. ``fails_on`` is an answer's beginning that breaks it."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.gate = threading.Event()
        self.reached = threading.Event()
        self.fails_on = "nothing begins like this"
        self.closes_after_one = False

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Wait, then score."""
        self.reached.set()
        assert self.gate.wait(60)
        if self.closes_after_one:
            self.gate.clear()
        if any(one.answer.startswith(self.fails_on) for one in exchanges):
            raise RuntimeError("the device is unhappy")
        return super().score(exchanges, method)


class CountingSource(RecordSource):
    """Counts its polls."""

    polls = 0

    def poll(self, timeout_s: float, max_records: int | None = None) -> list[Record]:
        """Count and poll."""
        self.polls += 1
        return super().poll(timeout_s, max_records)


@dataclass
class Loop:
    """A consumer that runs in a thread of its own."""

    source: CountingSource
    scorer: GatedScorer
    scorer_id: int
    topic: str
    dead_letter_topic: str
    telemetry: Telemetry
    settled: list[Settled] = field(default_factory=list)

    def gauge(self, name: str) -> float | None:
        """What the metrics say of the only partition."""
        place = f'{name}{{partition="0",topic="{self.topic}"}} '
        lines = self.telemetry.metrics.render()[0].decode().splitlines()
        return next((float(line.removeprefix(place)) for line in lines if line.startswith(place)), None)

    def outcomes(self) -> int:
        """Records booked by this loop."""
        return sum(sum(one.counts.values()) for one in self.settled)


@pytest.fixture(scope="session")
def gated_model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return load_model(str(save_model(tmp_path_factory.mktemp("gated") / "tiny")), device="cpu")


@contextmanager
def running(
    broker: Broker,
    store: Store,
    model: LanguageModel,
    *,
    insist_after_s: float = 60,
    batch_bytes: int = 1_000_000,
    max_poll_interval_ms: int = 300_000,
) -> Iterator[Loop]:
    """Messages in a topic, and a consumer on it."""
    stop, telemetry = Stop(), Telemetry()
    topic, dead_letter_topic = broker.create_topic(), broker.create_topic()
    broker.send(topic, [json.dumps(exchange(number)).encode() for number in range(MESSAGES)])
    scorer = GatedScorer(model)
    with ExitStack() as stack:
        sink = stack.enter_context(RecordSink(broker.bootstrap))
        source = CountingSource(
            broker.bootstrap,
            topic,
            f"group-of-{topic}",
            session_timeout_ms=broker.session_timeout_ms,
            max_poll_interval_ms=max_poll_interval_ms,
        )
        stack.callback(source.close)
        scorer_id = register(store.scorers, store.thresholds, scorer.identity, GAP.require_bounds())
        loop = Loop(source, scorer, scorer_id, topic, dead_letter_topic, telemetry)
        retry = RetryPolicy(stop, telemetry, part="test", within_s=60)
        judging = Judging(
            interactions=store.interactions,
            thresholds=store.thresholds,
            sampling=store.sampling,
            scoring=Scoring(scorer, telemetry.metrics),
            scorer_id=loop.scorer_id,
            detector=GAP,
            retry=retry,
            metrics=telemetry.metrics,
        )
        ingest = Ingest(
            judging=judging,
            settlements=store.settlements,
            dead_letters=DeadLetters(sink, dead_letter_topic, 1_000_000),
            max_message_bytes=1_000_000,
            default_app="default",
            retry=retry,
            metrics=telemetry.metrics,
        )
        placement = Placement(
            source=source,
            offsets=store.offsets,
            topic=topic,
            consumer_group="a-group",
            owner="test",
            first_start="earliest",
            insist_after_s=insist_after_s,
            telemetry=telemetry,
        )
        engine = stack.enter_context(Engine[Settled](None, 0.1))
        consumer = Consumer(
            source=source,
            placement=placement,
            ingest=ingest,
            engine=engine,
            topic=topic,
            batch_messages=BATCH,
            batch_bytes=batch_bytes,
            stop=stop,
            retry=retry,
            telemetry=telemetry,
            on_settled=loop.settled.append,
        )
        thread = threading.Thread(target=consumer.run)
        thread.start()
        try:
            yield loop
        finally:
            scorer.gate.set()
            stop.set()
            thread.join(60)
            assert not thread.is_alive()


def test_the_consumer_polls_on_with_its_partitions_paused_while_a_batch_is_scored(
    broker: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(broker, store, gated_model) as loop:
        assert loop.scorer.reached.wait(60)
        generation, polls = loop.source.generation(), loop.source.polls
        wait_until(lambda: loop.source.polls > polls + 20, what="20 polls while the scorer waits")
        assert loop.source.paused() == loop.source.assignment() == {0}
        assert loop.settled == []
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
        assert loop.source.generation() == generation
    assert store.offsets.positions(loop.topic) == {0: MESSAGES}
    assert store.ledger.counts() == {(Outcome.SCORED, None): MESSAGES}


def test_a_worker_that_no_longer_owns_a_partition_writes_nothing_of_it_and_goes_on_behind_the_other(
    broker: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(broker, store, gated_model) as loop:
        assert loop.scorer.reached.wait(60)
        # Meanwhile somebody else has booked the first six as what they are not.
        others = [
            Settlement(Record(loop.topic, 0, offset, None, None), Outcome.DEAD_LETTERED, "null_value")
            for offset in range(6)
        ]
        extent = loop.source.extent()
        other = Claim(loop.topic, 0, "another", loop.source.generation(), 0, 0, extent.topic_id)
        assert store.offsets.claim(other) == Position(0)
        store.settlements.settle(loop.scorer_id, others, [Advance(loop.topic, 0, 0, 6, "another", other.generation)])
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES - 6, what="the rest")
    assert loop.settled[0].fenced == ((loop.topic, 0),)
    assert store.ledger.counts() == {
        (Outcome.DEAD_LETTERED, "null_value"): 6,
        (Outcome.SCORED, None): MESSAGES - 6,
    }
    assert store.offsets.positions(loop.topic) == {0: MESSAGES}


@pytest.mark.kafka
def test_a_batch_may_take_longer_than_the_group_waits_for_a_poll(
    apache: Broker, store: Store, gated_model: LanguageModel
) -> None:
    """The control is test_a_source_that_stops_polling_loses_its_partitions_and_is_told."""
    with running(apache, store, gated_model, max_poll_interval_ms=int(POLL_INTERVAL_S * 1000)) as loop:
        assert loop.scorer.reached.wait(60)
        generation = loop.source.generation()
        started = time.monotonic()
        wait_until(lambda: time.monotonic() - started > BATCH_S, what="several poll intervals", deadline_s=BATCH_S + 10)
        assert loop.source.generation() == generation >= 0
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
        assert loop.source.generation() == generation
    assert not any(one.fenced for one in loop.settled)


def test_a_claim_against_a_later_generation_waits_and_insists_once_the_group_let_us_keep_the_partition(
    broker: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(broker, store, gated_model, insist_after_s=3) as loop:
        assert loop.scorer.reached.wait(60)
        # An owner of a later generation, as a group that is no more leaves behind.
        extent = loop.source.extent()
        later = Claim(loop.topic, 0, "another", 1_000_000, 0, 0, extent.topic_id)
        assert store.offsets.claim(later) == Position(0)
        with capture_logs() as events:
            loop.scorer.gate.set()
            wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
        assert loop.settled[0].fenced == ((loop.topic, 0),)
        assert [one["event"] for one in events if one["event"] in {"fenced", "claim_refused"}] == [
            "fenced",
            "claim_refused",
        ]
    assert store.ledger.counts() == {(Outcome.SCORED, None): MESSAGES}


def test_an_exchange_that_breaks_the_scorer_is_a_dead_letter_and_its_neighbours_are_scored(
    tansu: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(tansu, store, gated_model) as loop:
        loop.scorer.fails_on = str(exchange(2)["answer"])
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
    assert store.ledger.counts() == {
        (Outcome.DEAD_LETTERED, "scoring_failed"): 1,
        (Outcome.SCORED, None): MESSAGES - 1,
    }
    found = [row for row in store.sentences.rows() if row.score is not None]
    assert found
    for row in found:
        assert row.worst_start is not None
        assert row.worst_end is not None
        assert row.start_char <= row.worst_start < row.worst_end <= row.end_char
    assert {(row.language, row.language_supported) for row in found} == {("en", True)}


def copies_of(number: int) -> list[bytes]:
    """A batch of three copies of one exchange, and another one."""
    return [json.dumps(exchange(one)).encode() for one in (number, number, number, number + 1)]


def test_copies_of_what_breaks_the_scorer_are_dead_letters_each(
    tansu: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(tansu, store, gated_model) as loop:
        loop.scorer.fails_on = str(exchange(MESSAGES)["answer"])
        tansu.send(loop.topic, copies_of(MESSAGES))
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES + 4, what="every message")
    # None is a duplicate of something that was not stored.
    assert store.ledger.counts() == {(Outcome.DEAD_LETTERED, "scoring_failed"): 3, (Outcome.SCORED, None): MESSAGES + 1}


def test_copies_of_what_is_stored_are_duplicates_and_of_what_the_database_refuses_dead_letters(
    tansu: Broker, store: Store, database_url: str, gated_model: LanguageModel
) -> None:
    with psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        rule = f"ALTER TABLE interactions ADD CONSTRAINT one_not CHECK (interaction_id <> 'museum-{MESSAGES}')"
        connection.execute(rule)
    with running(tansu, store, gated_model) as loop:
        tansu.send(loop.topic, copies_of(MESSAGES) + copies_of(MESSAGES + 2))
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES + 8, what="every message")
    assert store.ledger.counts() == {
        (Outcome.DEAD_LETTERED, "store_rejected"): 3,
        (Outcome.SKIPPED, "duplicate"): 2,
        (Outcome.SCORED, None): MESSAGES + 3,
    }


def test_what_was_judged_before_is_not_scored_again(tansu: Broker, store: Store, gated_model: LanguageModel) -> None:
    with running(tansu, store, gated_model) as loop:
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
        loop.scorer.gate.clear()
        tansu.send(loop.topic, [json.dumps(exchange(number)).encode() for number in range(MESSAGES)])
        # The gate is closed, so only what needs no scoring comes through.
        wait_until(lambda: loop.outcomes() == 2 * MESSAGES, what="the duplicates")
    assert store.ledger.counts()[(Outcome.SKIPPED, "duplicate")] == MESSAGES


def test_records_that_no_client_can_decode_are_dead_letters_in_their_place(
    broker: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(broker, store, gated_model) as loop:
        broker.send_undecodable(loop.topic)
        broker.send(loop.topic, [json.dumps(exchange(number)).encode() for number in range(MESSAGES, MESSAGES + 3)])
        loop.scorer.gate.set()
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: MESSAGES + 6}, what="the last position")
    assert store.ledger.counts() == {
        (Outcome.SCORED, None): MESSAGES + 3,
        (Outcome.DEAD_LETTERED, "invalid_json"): 1,
        (Outcome.DEAD_LETTERED, "unreadable"): 2,
    }


def test_the_tools_of_kafka_are_told_where_a_partition_stands_before_anything_of_it_is_settled(
    broker: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(broker, store, gated_model) as loop:
        assert loop.scorer.reached.wait(60)
        wait_until(lambda: broker.committed(loop.topic) == 0, what="the position")


@pytest.mark.kafka
@pytest.mark.parametrize("aborted", [False, True])
def test_a_drained_topic_is_at_its_end_though_its_last_offsets_hold_no_record(
    apache: Broker, store: Store, gated_model: LanguageModel, *, aborted: bool
) -> None:
    with running(apache, store, gated_model) as loop:
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="the first messages")
        values = [json.dumps(exchange(number)).encode() for number in range(MESSAGES, MESSAGES + 5)]
        apache.send_transaction(loop.topic, values, aborted=aborted)
        end = MESSAGES + 6
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: end}, what="the end of the topic")
        wait_until(lambda: apache.committed(loop.topic) == end, what="the same for Kafka's tools")
        wait_until(lambda: loop.gauge("gasp_lag_messages") == 0.0, what="no lag")
        assert loop.gauge("gasp_oldest_unscored_age_seconds") == 0.0
        assert [status.lag for status in store.offsets.statuses()] == [0]
    assert store.ledger.counts() == {(Outcome.SCORED, None): MESSAGES + (0 if aborted else 5)}


def test_records_that_were_read_but_had_no_room_in_the_batch_are_not_passed(
    tansu: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(tansu, store, gated_model, batch_bytes=1) as loop:
        loop.scorer.gate.set()
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: MESSAGES}, what="the end of the topic")
    assert store.ledger.counts() == {(Outcome.SCORED, None): MESSAGES}


@pytest.mark.kafka
def test_a_worker_that_lost_its_partition_passes_no_offset_that_holds_no_record(
    apache: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(apache, store, gated_model) as loop:
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="the first messages")
        extent = loop.source.extent()
        other = Claim(loop.topic, 0, "another", loop.source.generation(), 0, 0, extent.topic_id)
        assert store.offsets.claim(other) == Position(MESSAGES)
        apache.send_transaction(loop.topic, [b"never to be seen"], aborted=True)
        wait_until(lambda: any(one.fenced for one in loop.settled), what="the step to be refused")
        # Then it claims again what the group has left it.
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: MESSAGES + 2}, what="the end of the topic")
    assert loop.outcomes() == MESSAGES


@pytest.mark.kafka
def test_a_large_batch_that_no_client_can_decode_behind_an_aborted_transaction_is_dead_letters_of_its_records_alone(
    apache: Broker, store: Store, gated_model: LanguageModel
) -> None:
    with running(apache, store, gated_model) as loop:
        apache.send_transaction(loop.topic, [b"never said"] * 3, aborted=True)
        apache.send_undecodable(loop.topic, before=0, hidden=1_200)
        apache.send(loop.topic, [json.dumps(exchange(MESSAGES)).encode()])
        loop.scorer.gate.set()
        end = MESSAGES + 4 + 1_201 + 1
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: end}, what="the last position")
    assert store.ledger.counts() == {
        (Outcome.SCORED, None): MESSAGES + 1,
        (Outcome.DEAD_LETTERED, "unreadable"): 1_201,
    }


def test_a_row_that_the_database_refuses_is_a_dead_letter_and_the_rest_of_its_batch_is_stored(
    tansu: Broker, store: Store, database_url: str, gated_model: LanguageModel
) -> None:
    # A rule of somebody's own on the table: what a database refuses is not ours to foresee.
    with psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        connection.execute("ALTER TABLE interactions ADD CONSTRAINT no_sevens CHECK (interaction_id <> 'museum-7')")
    with running(tansu, store, gated_model) as loop:
        loop.scorer.gate.set()
        wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
    assert store.ledger.counts() == {
        (Outcome.DEAD_LETTERED, "store_rejected"): 1,
        (Outcome.SCORED, None): MESSAGES - 1,
    }
    assert store.offsets.positions(loop.topic) == {0: MESSAGES}


def test_a_batch_that_takes_longer_to_store_than_a_statement_may_is_stored_in_parts(
    tansu: Broker, database_url: str, gated_model: LanguageModel
) -> None:
    with psycopg.connect(database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
        connection.execute("""
            CREATE FUNCTION slow_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.4); RETURN NEW; END $$;
            CREATE TRIGGER slow_disk BEFORE INSERT ON interactions FOR EACH ROW EXECUTE FUNCTION slow_disk()
        """)
    patient = open_store(f"{database_url}&options=-c%20statement_timeout%3D1s", application_name="gasp-test")
    with patient as store, capture_logs() as events:
        with running(tansu, store, gated_model) as loop:
            loop.scorer.gate.set()
            wait_until(lambda: loop.outcomes() == MESSAGES, what="every message")
        assert store.ledger.counts() == {(Outcome.SCORED, None): MESSAGES}
    assert "batch_too_slow_for_store" in {one["event"] for one in events}


def test_a_batch_is_settled_as_far_as_it_is_scored(tansu: Broker, store: Store, gated_model: LanguageModel) -> None:
    with running(tansu, store, gated_model) as loop:
        loop.scorer.closes_after_one = True
        loop.scorer.gate.set()
        wait_until(lambda: store.offsets.positions(loop.topic) == {0: 1}, what="the first part")
        assert loop.settled == []
