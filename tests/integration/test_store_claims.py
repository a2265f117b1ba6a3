from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from tests.integration.store_examples import TOPIC, advance, claim, dead_letter, prepared, rows
from tests.waiting import wait_until
from worker.rules.claims import Claim, LossReason, LostOffsets, Position
from worker.rules.settlement import Settled
from worker.store.errors import StoreNotReady
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


def test_two_consumer_groups_do_not_take_a_partition_from_each_other(store: Store, database_url: str) -> None:
    ours, theirs = replace(claim(), consumer_group="ours"), replace(claim(owner="worker-2"), consumer_group="theirs")
    assert store.offsets.claim(ours) is not None
    assert store.offsets.claim(replace(ours, owner="worker-3")) is not None
    with pytest.raises(StoreNotReady, match=r"consumer group ours, too: set GASP_CONSUMER_GROUP"):
        store.offsets.claim(theirs)
    rows(database_url, "UPDATE partition_offsets SET updated_at = updated_at - interval '61 s'")
    assert store.offsets.claim(theirs) is not None
    with pytest.raises(StoreNotReady, match=r"consumer group theirs, too"):
        store.offsets.claim(ours)


def test_a_worker_that_tells_no_consumer_group_changes_none(store: Store) -> None:
    ours = replace(claim(), consumer_group="ours")
    assert store.offsets.claim(ours) is not None
    assert store.offsets.claim(claim(owner="worker-2")) is not None
    assert store.offsets.claim(replace(ours, owner="worker-3")) is not None


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
    assert store.offsets.claim(again) == Position(0, 1, LostOffsets(1, None, LossReason.TOPIC_RECREATED))
    assert rows(database_url, "SELECT from_offset, to_offset, messages FROM v_lost_offsets") == [
        {"from_offset": 1, "to_offset": None, "messages": None}
    ]
    assert store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1)]).fenced == ((TOPIC, 0),)
    assert store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1, incarnation=1)]).counts
    booked = rows(database_url, "SELECT incarnation, record_offset FROM ledger ORDER BY 1")
    assert booked == [{"incarnation": 0, "record_offset": 0}, {"incarnation": 1, "record_offset": 0}]
    assert store.offsets.claim(again) == Position(1, 1)


def of_topic(topic_id: str, partition: int, partitions: int, *, first: int = 0, beginning: int = 0) -> Claim:
    """A claim on a topic with so many partitions, which at a first start would all begin at ``first``."""
    firsts = dict.fromkeys(range(partitions), first)
    found = claim(partition, generation=4, first=first, beginning=beginning)
    return replace(found, topic_id=topic_id, first_offsets=firsts)


def test_the_first_claim_of_a_topic_begins_all_its_partitions_and_one_that_appears_later_begins_at_its_first_message(
    store: Store,
) -> None:
    assert store.offsets.claim(of_topic("t", 2, 4, first=7)) == Position(7)
    assert store.offsets.positions(TOPIC) == dict.fromkeys(range(4), 7)
    # Claimed late, when more was logged: it was there at the first start all the same.
    assert store.offsets.claim(of_topic("t", 0, 6, first=11)) == Position(7)
    assert store.offsets.claim(of_topic("t", 5, 6, first=11, beginning=1)) == Position(1)
    assert store.offsets.claim(of_topic("t", 4, 6, first=12)) == Position(0)


def test_of_two_that_are_the_first_at_once_one_is_and_the_other_takes_what_is_not_begun_for_new(
    store: Store, database_url: str
) -> None:
    begins = f"INSERT INTO partition_offsets (topic, partition, next_offset) VALUES ('{TOPIC}', %s, 7)"
    waiting = (
        "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    address = database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(address) as first, ThreadPoolExecutor(1) as threads:
        for partition in range(2):
            first.execute(begins, [partition])
        second = threads.submit(store.offsets.claim, of_topic("t", 2, 3, first=9))
        wait_until(lambda: rows(database_url, waiting) == [{"n": 1}], what="the second to wait for the first")
        first.commit()
        assert second.result(60) == Position(0)
    assert store.offsets.positions(TOPIC) == {0: 7, 1: 7, 2: 0}


def test_partitions_that_a_recreated_topic_no_longer_has_are_lost_and_leave_the_lag(
    store: Store, database_url: str
) -> None:
    for partition in range(3):
        assert store.offsets.claim(of_topic("first", partition, 4, first=5)) == Position(5)
    lost = LostOffsets(5, None, LossReason.TOPIC_RECREATED)
    again = store.offsets.claim(of_topic("second", 0, 2, first=9))
    assert again == Position(0, 1, lost, {2: lost, 3: lost})
    assert store.offsets.claim(of_topic("second", 1, 2, first=9)) == Position(0, 1, lost)
    assert store.offsets.claim(of_topic("second", 0, 2)) == Position(0, 1)
    found = rows(
        database_url, "SELECT partition, incarnation, from_offset, messages, reason FROM v_lost_offsets ORDER BY 1"
    )
    assert found == [
        {"partition": n, "incarnation": 0, "from_offset": 5, "messages": None, "reason": "topic_recreated"}
        for n in range(4)
    ]
    assert [row["partition"] for row in rows(database_url, "SELECT partition FROM v_ingest_lag ORDER BY 1")] == [0, 1]
    assert [status.partition for status in store.offsets.statuses()] == [0, 1]
    # A third topic has them again, beside one that there never was: all of one incarnation, which no book has yet.
    assert store.offsets.claim(of_topic("third", 3, 5, beginning=2)) == Position(2, 2)
    assert store.offsets.claim(of_topic("third", 4, 5)) == Position(0, 2)
    assert store.offsets.claim(of_topic("third", 0, 5)) == Position(0, 2, LostOffsets(0, None, lost.reason))
    shown = rows(database_url, "SELECT partition FROM v_ingest_lag ORDER BY 1")
    assert [row["partition"] for row in shown] == [0, 1, 3, 4]


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
