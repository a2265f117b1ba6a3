from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.integration.store_examples import TOPIC, advance, claim, dead_letter, prepared, rows
from worker.rules.claims import LossReason, LostOffsets, Position
from worker.rules.settlement import Settled
from worker.store.store import Store

GAPS = "SELECT topic, partition, incarnation, from_offset, to_offset, reason, owner FROM offset_gaps"


def test_a_partition_begins_where_the_first_claim_says_and_then_stays_where_it_stands(store: Store) -> None:
    assert store.offsets.claim(claim(3, first=17)) == Position(17)
    assert store.offsets.claim(claim(3, first=99)) == Position(17)
    assert store.offsets.positions(TOPIC) == {3: 17}
    assert store.offsets.positions("another") == {}


def test_after_another_worker_has_claimed_the_partition_the_old_owner_is_fenced(store: Store) -> None:
    scorer_id, _ = prepared(store)
    assert store.offsets.claim(claim(owner="worker-2", generation=4)) == Position(0)
    stale = store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1)])
    assert stale == Settled({}, ((TOPIC, 0),))
    assert store.offsets.positions(TOPIC) == {0: 0}
    fresh = store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1, owner="worker-2", generation=4)])
    assert fresh.fenced == ()
    assert store.offsets.positions(TOPIC) == {0: 1}


def test_a_claim_of_an_older_generation_is_refused_unless_it_insists(store: Store) -> None:
    prepared(store)
    late = claim(owner="worker-2", generation=2)
    assert store.offsets.claim(late) is None
    assert store.offsets.claim(replace(late, insists=True)) == Position(0)
    assert store.offsets.claim(claim(generation=1)) is None


def test_the_owner_itself_may_claim_again_whatever_its_generation(store: Store) -> None:
    prepared(store)
    assert store.offsets.claim(claim(generation=-1)) == Position(0)


def test_an_owner_that_keeps_its_partition_moves_on_with_its_group(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    assert store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1, generation=7)]).fenced == ()
    assert rows(database_url, "SELECT generation FROM partition_offsets") == [{"generation": 7}]
    # What it had begun before the group moved on is of an older generation.
    assert store.settlements.settle(scorer_id, [dead_letter(1)], [advance(1, 2, generation=6)]).fenced == ((TOPIC, 0),)


def test_what_retention_has_deleted_is_entered_as_a_gap_and_passed(store: Store, database_url: str) -> None:
    prepared(store)
    assert store.offsets.claim(claim(beginning=40)) == Position(40, 0, LostOffsets(0, 40, LossReason.RETENTION))
    assert rows(database_url, GAPS) == [
        {
            "topic": TOPIC,
            "partition": 0,
            "incarnation": 0,
            "from_offset": 0,
            "to_offset": 40,
            "reason": "retention",
            "owner": "worker-1",
        }
    ]
    assert rows(database_url, "SELECT messages FROM v_lost_offsets") == [{"messages": 40}]
    assert store.offsets.claim(claim(beginning=40)) == Position(40)


def test_a_topic_that_was_created_again_is_read_from_its_start_and_booked_beside_the_old_one(
    store: Store, database_url: str
) -> None:
    scorer_id, _ = prepared(store)
    store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1)])
    again = replace(claim(), topic_id="second-topic")
    assert store.offsets.claim(again) == Position(0, 1, LostOffsets(1, 6, LossReason.TOPIC_RECREATED))
    assert store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1)]).fenced == ((TOPIC, 0),)
    assert store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1, incarnation=1)]).counts
    booked = rows(database_url, "SELECT incarnation, record_offset FROM ledger ORDER BY 1")
    assert booked == [{"incarnation": 0, "record_offset": 0}, {"incarnation": 1, "record_offset": 0}]
    assert store.offsets.claim(again) == Position(1, 1)


def test_a_broker_that_tells_no_topic_id_changes_nothing(store: Store) -> None:
    prepared(store)
    assert store.offsets.claim(replace(claim(), topic_id=None)) == Position(0)
    assert store.offsets.claim(claim()) == Position(0)


def test_of_two_that_claim_and_write_at_once_only_the_last_owner_writes(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    barrier = threading.Barrier(2, timeout=30)

    def take_over(number: int) -> Settled:
        owner = f"worker-{number}"
        barrier.wait()
        position = store.offsets.claim(claim(owner=owner, generation=4))
        assert position is not None
        barrier.wait()
        return store.settlements.settle(
            scorer_id,
            [dead_letter(position.next_offset)],
            [advance(position.next_offset, position.next_offset + 1, owner=owner, generation=4)],
        )

    for round_number in range(10):
        with ThreadPoolExecutor(2) as threads:
            done = list(threads.map(take_over, range(2)))
        assert sorted(result.fenced for result in done) == [(), ((TOPIC, 0),)]
        assert store.offsets.positions(TOPIC) == {0: round_number + 1}
    assert rows(database_url, "SELECT count(*) AS n FROM ledger") == [{"n": 10}]
