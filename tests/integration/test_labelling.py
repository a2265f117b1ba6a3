"""The label topic, from the embedded broker into PostgreSQL, by the consumer that the maintain role runs."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason
from schemas.review_label import ReviewLabel
from tests.brokers import Broker
from tests.integration.label_examples import ASKED, answered, asked, consensus, held, label, task_state
from tests.integration.store_examples import rows
from tests.waiting import wait_until
from worker.broker.scan import TopicScan
from worker.broker.sink import RecordSink
from worker.ingest.dead_letters import DeadLetters
from worker.review.intake import LabelIntake
from worker.review.labelling import labelling
from worker.rules.claims import Claim
from worker.rules.label_settlement import LabelSettlement
from worker.rules.records import Record
from worker.rules.settlement import Advance, Settled
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.settings import Settings
from worker.store.label_settlements import LabelSettlements
from worker.store.labels import Labels
from worker.store.store import Store

LEDGER = "SELECT outcome, reason, detail FROM ledger WHERE topic = %(topic)s ORDER BY record_offset"


@dataclass(frozen=True, slots=True)
class Desk:
    """A label topic, and the settings of a worker that reads it."""

    broker: Broker
    settings: Settings
    store: Store
    url: str

    @property
    def topic(self) -> str:
        return self.settings.review_labels_topic

    def send(self, *values: bytes | dict[str, Any] | ReviewLabel) -> None:
        self.broker.send(self.topic, [_bytes(value) for value in values])

    def booked(self) -> list[tuple[str, str | None]]:
        return [(row["outcome"], row["reason"]) for row in rows(self.url, LEDGER, topic=self.topic)]

    def letters(self) -> list[Record]:
        scan = TopicScan(self.broker.bootstrap, self.settings.dead_letter_topic)
        return [item for item in scan if isinstance(item, Record)]

    @contextmanager
    def reading(
        self,
        labels: Labels | None = None,
        settlements: LabelSettlements | None = None,
        owner: str = "test",
        telemetry: Telemetry | None = None,
    ) -> Iterator[Stop]:
        stop = Stop()
        with labelling(
            self.settings,
            offsets=self.store.offsets,
            labels=labels or self.store.labels,
            settlements=settlements or self.store.label_settlements,
            owner=owner,
            stop=stop,
            telemetry=telemetry or Telemetry(),
        ):
            yield stop

    def read(self, records: int) -> None:
        """Take in what is there until so many records are in the books."""
        with self.reading():
            wait_until(lambda: len(self.booked()) == records, what=f"{records} records in the books")


def _bytes(value: bytes | dict[str, Any] | ReviewLabel) -> bytes:
    if isinstance(value, ReviewLabel):
        return value.model_dump_json(by_alias=True, exclude_none=True).encode()
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def desk_on(broker: Broker, store: Store, url: str) -> Desk:
    settings = Settings(
        database_url=url,
        kafka_bootstrap_servers=broker.bootstrap,
        consumer_group=f"group-of-{broker.create_topic()}",
        review_labels_topic=broker.create_topic(),
        dead_letter_topic=broker.create_topic(),
        session_timeout_s=broker.session_timeout_ms / 1000,
    )
    return Desk(broker, settings, store, url)


@pytest.fixture
def desk(tansu: Broker, store: Store, database_url: str) -> Desk:
    return desk_on(tansu, store, database_url)


@pytest.fixture
def task(desk: Desk) -> UUID:
    answered(desk.store, "id-0")
    return asked(desk.url, "id-0")


def test_labels_of_the_topic_label_their_task_and_each_record_gets_its_outcome(desk: Desk, task: UUID) -> None:
    first = label(task, 0, "unsupported", detail="conflict", note="see page 4")
    unknown = _bytes(label(task, 9, "supported"))
    spelled = {**json.loads(_bytes(label(task, 1, "supported"))), "label": " Not-a claim"}
    desk.send(
        first,
        first,
        b"\xef\xbb\xbf" + json.dumps(spelled).encode(),
        label("id-7", 0, "partly"),
        unknown,
        {**spelled, "label": "maybe"},
        {**spelled, "task_id": None},
        b"{not json",
        {"action": "PROJECT_UPDATED", "project": {}},
        label(task, 0, "partly", minute=5),
    )
    desk.read(10)
    assert desk.booked() == [
        ("labelled", None),
        ("skipped", "repeated"),
        ("labelled", None),
        ("labelled", None),
        ("dead_lettered", "unknown_sentence"),
        ("dead_lettered", "bad_label"),
        ("dead_lettered", "wrong_shape"),
        ("dead_lettered", "invalid_json"),
        ("skipped", "no_label"),
        ("labelled", None),
    ]
    assert held(desk.url) == [
        ("id-0", 0, "ada", "partly"),
        ("id-0", 1, "ada", "not_a_claim"),
        ("id-7", 0, "ada", "partly"),
    ]
    assert task_state(desk.url, task) == ("labelled", 1)
    letters = desk.letters()
    assert letters[0].value == unknown
    facts = [DeadLetter.from_headers(letter.headers) for letter in letters]
    assert [one.reason for one in facts] == [
        RejectReason.UNKNOWN_SENTENCE,
        RejectReason.BAD_LABEL,
        RejectReason.WRONG_SHAPE,
        RejectReason.INVALID_JSON,
    ]
    assert {one.topic for one in facts} == {desk.topic}
    assert "maybe" not in " ".join(one.detail for one in facts)


def test_nul_and_half_a_character_in_a_note_are_replaced(desk: Desk, task: UUID) -> None:
    plain = _bytes(label(task, 0, "supported", note="NOTE"))
    desk.send(plain.replace(b"NOTE", rb"a\u0000b\ud800c"))
    desk.read(1)
    assert rows(desk.url, "SELECT note FROM review_labels") == [{"note": "a\ufffdb\ufffdc"}]


def test_of_an_annotation_with_one_wrong_sentence_nothing_counts_and_those_beside_it_do(desk: Desk, task: UUID) -> None:
    spans = [{"index": index, "start": 0, "end": 9} for index in (0, 9)]

    def annotation(number: int, hour: int, *words: str) -> dict[str, Any]:
        results: list[dict[str, Any]] = [
            {"from_name": f"label_{position}", "type": "choices", "value": {"choices": [word]}}
            for position, word in enumerate(words)
        ]
        results.append({"from_name": "quality", "type": "rating", "value": {"rating": 3}})
        time = f"2026-11-30T{hour}:00:00Z"
        return {"id": number, "completed_by": number, "updated_at": time, "result": results}

    def event(action: str, *annotations: dict[str, Any]) -> dict[str, Any]:
        sent = {"data": {"task_id": str(task), "answer": "An answer.", "sentences": spans}}
        return {"action": action, "project": {}, "task": [sent], "annotation": list(annotations)}

    telemetry = Telemetry()
    desk.send(
        event("ANNOTATIONS_CREATED", annotation(17, 12, "supported")),
        event("ANNOTATION_UPDATED", annotation(17, 13, "partly", "partly"), annotation(18, 13, "partly")),
        event("ANNOTATIONS_DELETED", annotation(18, 14)),
    )
    with desk.reading(telemetry=telemetry):
        wait_until(lambda: len(desk.booked()) == 3, what="the books")
    assert desk.booked() == [("labelled", None), ("dead_lettered", "unknown_sentence"), ("labelled", None)]
    stored = rows(desk.url, "SELECT external_id, action, label FROM review_labels ORDER BY id")
    assert [tuple(row.values()) for row in stored] == [
        ("17:0", "label", "supported"),
        ("18:0", "label", "partly"),
        ("18:0", "withdraw", None),
    ]
    assert held(desk.url) == [("id-0", 0, "17", "supported")]
    assert b"gasp_unread_choices_total 3.0" in telemetry.metrics.render()[0]


class Killed(Exception):  # noqa: N818 - what becomes of the process
    """Stands for the end of the process."""


class DyingLabels(Labels):
    """Ends the process before it is asked which sentences are unknown."""

    def unknown_sentences(self, labels: Sequence[ReviewLabel]) -> set[int]:  # noqa: ARG002 - as the one it replaces
        """The end."""
        raise Killed


class DyingSettlements(LabelSettlements):
    """Ends the process before or behind the transaction."""

    behind = False

    def settle(self, settlements: Sequence[LabelSettlement], advances: Sequence[Advance]) -> Settled:
        """As the store, and the end."""
        if self.behind:
            super().settle(settlements, advances)
        raise Killed


@pytest.mark.parametrize(("step", "behind"), [("unknown_sentences", False), ("settle", False), ("settle", True)])
def test_a_process_that_ends_between_two_steps_loses_no_label_and_doubles_none(
    desk: Desk,
    task: UUID,
    step: str,
    behind: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    desk.send(*(label(task, index, "supported") for index in ASKED), b"no label")
    labels = DyingLabels(desk.store._database) if step == "unknown_sentences" else None
    settlements = DyingSettlements(desk.store._database) if step == "settle" else None
    if settlements is not None:
        settlements.behind = behind
    with pytest.raises(Killed), desk.reading(labels, settlements) as stop:
        assert stop.wait(60)
    desk.read(3)
    assert [outcome for outcome, _ in desk.booked()] == ["labelled", "labelled", "dead_lettered"]
    assert rows(desk.url, "SELECT count(*) AS n FROM review_labels") == [{"n": 2}]
    assert task_state(desk.url, task) == ("labelled", 1)
    assert consensus(desk.url) == {0: False, 1: False}
    # It is sent before it is booked: a crash between the two repeats a letter and loses none.
    assert {letter.value for letter in desk.letters()} == {b"no label"}


def test_a_label_that_the_database_refuses_is_a_dead_letter_and_the_others_go_in(desk: Desk, task: UUID) -> None:
    rare = random.Random(0)
    # Of characters that no compression makes fit into an entry of the index.
    tool, external_id = ("".join(chr(rare.randrange(0x20000, 0x2A6D0)) for _ in range(size)) for size in (200, 500))
    desk.send(
        label(task, 0, "supported"),
        label(task, 1, "supported", tool=tool, external_id=external_id),
        label(task, 1, "partly"),
    )
    desk.read(3)
    assert desk.booked() == [("labelled", None), ("dead_lettered", "store_rejected"), ("labelled", None)]


def test_a_record_that_no_client_can_read_is_a_dead_letter_by_reference(desk: Desk) -> None:
    telemetry = Telemetry()
    retry = RetryPolicy(Stop(), telemetry, part="test", within_s=60)
    assert desk.store.offsets.claim(Claim(desk.topic, 0, "test", 1, 0, 0)) is not None
    with RecordSink(desk.broker.bootstrap) as sink:
        letters = DeadLetters(sink, desk.settings.dead_letter_topic, 1_000_000)
        intake = LabelIntake(
            labels=desk.store.labels,
            settlements=desk.store.label_settlements,
            dead_letters=letters,
            max_message_bytes=1_000_000,
            retry=retry,
            metrics=telemetry.metrics,
        )
        intake.bury([Record(desk.topic, 0, 0, None, None)], Advance(desk.topic, 0, 0, 1, "test", 1))
    assert desk.booked() == [("dead_lettered", "unreadable")]
    assert len(desk.letters()) == 1


def test_a_topic_that_does_not_exist_is_waited_for(desk: Desk) -> None:
    absent = replace(desk, settings=desk.settings.model_copy(update={"review_labels_topic": "there-is-none"}))
    with capture_logs() as logs, absent.reading() as stop:
        wait_until(lambda: any(one["event"] == "labels_topic_missing" for one in logs), what="a warning")
        assert not stop.is_set()


def test_without_a_topic_nothing_is_read(desk: Desk) -> None:
    silent = replace(desk, settings=desk.settings.model_copy(update={"review_labels_topic": ""}))
    with silent.reading() as stop:
        assert not stop.is_set()


def test_a_worker_of_the_maintain_role_takes_labels_in_until_it_is_stopped(desk: Desk, task: UUID) -> None:
    desk.send(*(label(task, index, "supported") for index in ASKED))
    settings = desk.settings.model_copy(update={"review_tasks_topic": ""})
    stop = Stop()
    worker = threading.Thread(target=run_service, args=(settings, {Role.MAINTAIN}, stop))
    worker.start()
    try:
        wait_until(lambda: task_state(desk.url, task) == ("labelled", 1), what="a labelled task")
    finally:
        stop.set()
        worker.join(30)
    assert not worker.is_alive()
    assert desk.booked() == [("labelled", None)] * 2


def test_two_workers_share_the_topic_and_book_each_label_once(desk: Desk, task: UUID) -> None:
    with desk.reading(owner="one"), desk.reading(owner="another"):
        for number in range(30):
            desk.send(label(task, 0, "supported", f"r{number}"))
        wait_until(lambda: len(desk.booked()) == 30, what="30 records in the books")
    assert desk.booked() == [("labelled", None)] * 30
    assert len(held(desk.url)) == 30


def test_a_label_that_was_deleted_where_it_came_from_is_skipped(desk: Desk) -> None:
    with RecordSink(desk.broker.bootstrap) as sink:
        sink.send(desk.topic, None, key=b"label-7")
        sink.flush(30)
    desk.send({"before": {"label": "supported"}, "after": None, "source": {}, "op": "d"})
    desk.read(2)
    assert desk.booked() == [("skipped", "tombstone"), ("skipped", "cdc_delete")]
    assert desk.letters() == []


@pytest.mark.kafka
def test_a_drained_label_topic_is_at_its_end_though_its_last_offset_holds_no_record(
    apache: Broker, store: Store, database_url: str
) -> None:
    desk = desk_on(apache, store, database_url)
    apache.send_transaction(desk.topic, [b"no label"])
    apache.send_transaction(desk.topic, [b"never said"], aborted=True)
    with desk.reading():
        wait_until(lambda: store.offsets.positions(desk.topic) == {0: 4}, what="the end of the topic")
    assert desk.booked() == [("dead_lettered", "invalid_json")]
