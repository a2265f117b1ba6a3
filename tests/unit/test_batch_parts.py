"""How a batch is cut: into parts that are scored one after the other, and smaller after one that ended its worker."""

from __future__ import annotations

import pytest

from worker.ingest.batch_limit import TRUST_BATCHES, BatchLimit
from worker.ingest.pace import Pace
from worker.ingest.steps import Steps
from worker.rules.records import Record
from worker.rules.settlement import Advance


def advance(partition: int, expected: int, next_offset: int, *, ends_batch: bool = True) -> Advance:
    return Advance("t", partition, expected, next_offset, "worker", 1, ends_batch=ends_batch)


def records(*places: tuple[int, int]) -> list[Record]:
    return [Record("t", partition, offset, None, None) for partition, offset in places]


def test_before_anything_is_known_a_part_has_one_exchange_and_what_needs_no_scoring() -> None:
    assert Pace(10).fitting([0, 0, 500, 0, 500]) == 4
    assert Pace(10).fitting([0, 0]) == 2


def test_a_part_has_what_fits_its_time_and_one_exchange_at_least() -> None:
    pace = Pace(10)
    pace.took(1_000, 2.0)
    assert pace.fitting([1_000] * 8) == 5
    assert pace.fitting([9_000, 1]) == 1
    assert pace.fitting([100] * 8) == 8
    assert pace.fitting([100] * 8, alone=True) == 1


def test_the_newest_part_counts_most() -> None:
    pace = Pace(10)
    for seconds in (1.0, 10.0, 10.0, 10.0, 10.0):
        pace.took(1_000, seconds)
    pace.took(0, 100.0)
    assert pace.fitting([1_000] * 8) == 1


def test_the_steps_of_parts_lead_to_where_the_batch_leads() -> None:
    batch = records((0, 4), (1, 7), (0, 5), (0, 9))
    steps = Steps([advance(0, 4, 12), advance(1, 7, 8), advance(2, 0, 3)])
    first = steps.through(batch[:2], batch[2:])
    assert sorted(first, key=lambda step: step.partition) == [
        advance(0, 4, 5, ends_batch=False),
        advance(1, 7, 8),
        advance(2, 0, 3),
    ]
    assert steps.through(batch[2:3], batch[3:]) == [advance(0, 5, 6, ends_batch=False)]
    assert steps.through(batch[3:], []) == [advance(0, 6, 12)]


@pytest.mark.parametrize(("attempts", "messages"), [(0, 16), (1, 8), (2, 4), (4, 1), (5, 1), (500, 1)])
def test_each_attempt_that_did_not_come_back_halves_the_batch(attempts: int, messages: int) -> None:
    limit = BatchLimit(16)
    limit.after(attempts)
    assert limit.messages == messages


def test_batches_that_go_well_bring_the_limit_back() -> None:
    limit = BatchLimit(12)
    limit.after(2)
    grown = []
    for _ in range(3 * TRUST_BATCHES):
        limit.went_well()
        grown.append(limit.messages)
    assert grown == [3] * (TRUST_BATCHES - 1) + [6] * TRUST_BATCHES + [12] * (TRUST_BATCHES + 1)
