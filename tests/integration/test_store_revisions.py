from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from schemas.reject_reason import RejectReason
from schemas.replay import Replay
from tests.integration.store_examples import BROKER_TIME_MS, OCCURRED_AT, TOPIC, at, scored
from worker.rules.verdict import Threshold
from worker.store.deliveries import Delivery
from worker.store.revisions import ContentKey, StoredRevision, keyed, plan_revisions

THRESHOLD = Threshold(1, None, 1, 0.1, 0.5, "seeded", datetime(2026, 1, 1, tzinfo=UTC))
# What arrives: an interaction, one of its editions, and the hour at which it took place, if the message says so.
HOURS = st.none() | st.integers(-2, 2)
ARRIVALS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["one ", "two ", "three "]), HOURS), max_size=12
)
Arrival = tuple[str, str, int | None]


def _apply(arrivals: list[Arrival], stored: dict[ContentKey, StoredRevision], first: int = 0) -> list[bool]:
    """Carry a plan out on a dictionary, as the database would; say of each arrival whether it was a duplicate."""
    batch = [
        keyed(at(scored(n, name, [0.9], THRESHOLD, edition=edition), hour))
        for n, (name, edition, hour) in enumerate(arrivals, start=first)
    ]
    plan = plan_revisions(batch, dict(stored))
    for key, old in stored.items():
        stored[key] = replace(old, is_current=old.is_current and old.pk not in plan.superseded)
        if old.pk in plan.current:
            stored[key] = replace(old, is_current=True, delivery=plan.current[old.pk])
    for key, new in plan.added.items():
        stored[key] = StoredRevision(len(stored), new.revision, new.is_current, True, new.delivery)  # noqa: FBT003
    return [position in plan.duplicates for position in range(len(batch))]


def _current(stored: dict[ContentKey, StoredRevision]) -> dict[str, bytes]:
    return {key[1]: key[2] for key, old in stored.items() if old.is_current}


@given(arrivals=ARRIVALS, cut=st.integers(0, 12))
def test_a_stream_leaves_the_same_revisions_wherever_it_is_cut_into_batches(arrivals: list[Arrival], cut: int) -> None:
    whole: dict[ContentKey, StoredRevision] = {}
    duplicates = _apply(arrivals, whole)
    halves: dict[ContentKey, StoredRevision] = {}
    assert _apply(arrivals[:cut], halves) + _apply(arrivals[cut:], halves, cut) == duplicates
    assert _current(halves) == _current(whole)
    assert {key: old.revision for key, old in halves.items()} == {key: old.revision for key, old in whole.items()}


@given(arrivals=ARRIVALS)
def test_revisions_count_the_contents_of_an_interaction_and_the_latest_exchange_is_current(
    arrivals: list[Arrival],
) -> None:
    stored: dict[ContentKey, StoredRevision] = {}
    duplicates = _apply(arrivals, stored)
    contents = [arrival[:2] for arrival in arrivals]
    assert [content in contents[:position] for position, content in enumerate(contents)] == duplicates
    broker_time = datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)
    for name in {name for name, *_ in arrivals}:
        found = sorted((old.revision, old.is_current) for key, old in stored.items() if key[1] == name)
        editions = len({edition for other, edition in contents if other == name})
        assert [revision for revision, _ in found] == list(range(1, editions + 1))
        came = [
            (broker_time if hour is None else OCCURRED_AT + timedelta(hours=hour), offset, edition)
            for offset, (other, edition, hour) in enumerate(arrivals)
            if other == name
        ]
        edition = max(came)[2]
        key = keyed(scored(0, name, [0.9], THRESHOLD, edition=edition)).key
        assert key is not None
        assert _current(stored)[name] == key[2]


# --- which of two deliveries is the newer ---

FIRST = Delivery(OCCURRED_AT, OCCURRED_AT, TOPIC, 0, 0, 7)
MINUTE = timedelta(minutes=1)


def test_the_later_exchange_is_newer_wherever_and_whenever_it_lies() -> None:
    late = Delivery(OCCURRED_AT - MINUTE, OCCURRED_AT + MINUTE, "another", 9, 5, 99)
    assert not late.is_newer_than(FIRST)
    assert replace(late, time=OCCURRED_AT + MINUTE).is_newer_than(FIRST)


def test_at_the_same_time_the_place_in_the_partition_decides_not_the_broker_s_clock() -> None:
    behind = replace(FIRST, offset=8, received_at=OCCURRED_AT - MINUTE)
    assert behind.is_newer_than(FIRST)
    assert not FIRST.is_newer_than(behind)
    anew = replace(FIRST, incarnation=1, offset=0)
    assert anew.is_newer_than(FIRST)
    assert not FIRST.is_newer_than(anew)


def test_at_the_same_time_in_two_partitions_the_broker_s_time_decides_and_then_the_arrival() -> None:
    for elsewhere in ({"partition": 1, "offset": 0}, {"topic": "another", "offset": 0}):
        there = replace(FIRST, **elsewhere)
        assert there.is_newer_than(FIRST)
        assert FIRST.is_newer_than(there)
        assert replace(there, received_at=OCCURRED_AT + MINUTE).is_newer_than(FIRST)
        assert not replace(there, received_at=OCCURRED_AT - MINUTE).is_newer_than(FIRST)
        assert replace(there, received_at=None).is_newer_than(FIRST)


def test_a_delivery_is_read_as_it_was_noted() -> None:
    for delivery in (FIRST, replace(FIRST, received_at=None, incarnation=3)):
        assert Delivery.from_row(delivery.as_row()) == delivery


def test_a_message_that_was_replayed_is_as_old_as_it_was_at_first() -> None:
    plain = at(scored(40, "a", [0.9], THRESHOLD), None)
    replay = Replay(
        count=1,
        topic=TOPIC,
        partition=0,
        offset=3,
        timestamp_ms=BROKER_TIME_MS - 60_000,
        reason=RejectReason.SCORING_FAILED,
        replayed_at=OCCURRED_AT,
    )
    replayed = replace(plain, record=replace(plain.record, headers=replay.to_headers()))
    broker_time = datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)
    assert keyed(plain).delivery == Delivery(broker_time, broker_time, TOPIC, 0, 0, 40)
    assert keyed(replayed).delivery == Delivery(broker_time - MINUTE, broker_time - MINUTE, TOPIC, 0, 0, 3)
    without_time = replay.model_copy(update={"timestamp_ms": None})
    replayed = replace(plain, record=replace(plain.record, headers=without_time.to_headers()))
    assert keyed(replayed).delivery == Delivery(broker_time, broker_time, TOPIC, 0, 0, 3)
