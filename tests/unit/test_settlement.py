"""What a record of several results is booked as and sent as, and how batches of such records are cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from schemas.dead_letter import MAX_DETAIL_CHARS
from worker.broker.sink import RecordSink
from worker.ingest.booking import Booking
from worker.ingest.dead_letters import DeadLetters
from worker.rules.records import Record
from worker.rules.settlement import Advance, Outcome, Settled, Settlement, by_record, letter_of
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.errors import StoreTimeout


def results(offset: int, *outcomes: Outcome, detail: str = "answer: missing") -> list[Settlement]:
    record = Record("t", 0, offset, None, b"{}")
    reasons = {Outcome.DEAD_LETTERED: "wrong_shape", Outcome.SKIPPED: "duplicate"}
    details = {Outcome.DEAD_LETTERED: detail}
    return [
        Settlement(record, outcome, reasons.get(outcome), details.get(outcome), item=item)
        for item, outcome in enumerate(outcomes, start=1)
    ]


def test_the_letter_of_a_record_with_one_result_says_what_is_wrong_with_it() -> None:
    (only,) = results(0, Outcome.DEAD_LETTERED)
    assert letter_of([only]) == only
    assert letter_of(results(0, Outcome.SCORED)) is None


def test_the_letter_of_a_record_with_several_names_the_first_and_counts_the_others() -> None:
    good, bad = Outcome.SCORED, Outcome.DEAD_LETTERED
    assert letter_of(results(0, good, good)) is None
    one, three = letter_of(results(0, good, bad)), letter_of(results(0, good, bad, bad, good, bad))
    assert one is not None
    assert three is not None
    assert (one.reason, one.detail) == ("wrong_shape", "row 2: answer: missing")
    assert three.detail == "row 2: answer: missing; and 2 more"


def test_a_detail_that_names_its_row_names_it_once() -> None:
    letter = letter_of(results(0, *[Outcome.DEAD_LETTERED] * 2, detail="row 7: answer: missing"))
    assert letter is not None
    assert letter.detail == "row 7: answer: missing; and 1 more"


def test_a_long_detail_leaves_room_for_the_count() -> None:
    letter = letter_of(results(0, *[Outcome.DEAD_LETTERED] * 12, detail="x" * MAX_DETAIL_CHARS))
    assert letter is not None
    assert letter.detail is not None
    assert len(letter.detail) == MAX_DETAIL_CHARS
    assert letter.detail.endswith("x; and 11 more")


class Books:
    """Notes what is written; refuses what ``refuses`` says."""

    def __init__(self, refuses: type[Exception], beyond: int) -> None:
        self.written: list[tuple[list[int], list[tuple[int, int, bool]]]] = []
        self._refuses = refuses
        self._beyond = beyond

    def write(self, batch: Sequence[Settlement], advances: Sequence[Advance]) -> Settled:
        if len(batch) > self._beyond:
            raise self._refuses("for tests")
        steps = [(step.expected, step.next_offset, step.ends_batch) for step in advances]
        self.written.append(([one.record.offset for one in batch], steps))
        return Settled({(Outcome.SCORED, None): len(batch)})


@pytest.fixture
def sink() -> RecordSink:
    """Nothing is sent."""
    return RecordSink.__new__(RecordSink)


def booking(books: Books, sink: RecordSink) -> Booking[Settlement]:
    telemetry = Telemetry()
    return Booking(
        write=books.write,
        dead=lambda record, reason, detail: Settlement(record, Outcome.DEAD_LETTERED, reason, detail),
        dead_letters=DeadLetters(sink, "letters", 1000),
        retry=RetryPolicy(Stop(), telemetry, part="test", within_s=60),
        metrics=telemetry.metrics,
    )


def test_a_batch_that_is_too_slow_is_cut_between_records_and_never_inside_one(sink: RecordSink) -> None:
    batch = [one for offset in (4, 5, 6) for one in results(offset, *[Outcome.SCORED] * 3)]
    books = Books(StoreTimeout, beyond=3)
    done = booking(books, sink).book(batch, [Advance("t", 0, 4, 9, "worker", 1)])
    assert books.written == [
        ([4, 4, 4], [(4, 5, False)]),
        ([5, 5, 5], [(5, 6, False)]),
        ([6, 6, 6], [(6, 9, True)]),
    ]
    assert done.counts == {(Outcome.SCORED, None): 9}


def test_records_are_grouped_as_they_lie_behind_each_other() -> None:
    batch = results(4, Outcome.SCORED, Outcome.SCORED) + results(5, Outcome.SKIPPED)
    assert [[one.item for one in record] for record in by_record(batch)] == [[1, 2], [1]]
    assert by_record([]) == []
