"""Pieces of traces, kept in the transaction that books their messages."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from schemas.traces.piece import Piece, TraceKey
from tests.integration.store_examples import BROKER_TIME_MS, advance, claim, prepared, record, rows, scored
from tests.integration.trace_examples import collected, collected_all
from tests.unit.traces.steps import chain, llm, rag, step
from worker.rules import pieces as rules
from worker.rules.pieces import TracePolicy, kept_pieces
from worker.rules.settlement import Outcome, Settlement
from worker.store.store import Store

POLICY = TracePolicy(grace=timedelta(seconds=7), time_out=timedelta(seconds=300))
TRACES = """
SELECT trace_id, state, pieces, steps, version, has_root, app, late_pieces, closed_by,
    extract(epoch FROM run_after - last_at)::integer AS due_s
FROM traces ORDER BY trace_id
"""
PLACES = (
    "SELECT topic, partition, incarnation, record_offset, adapter FROM trace_pieces ORDER BY partition, record_offset"
)


def close(url: str, outcome: str = "scored", reason: str | None = None, closed_by: str = "complete") -> None:
    """As a trace is left that was closed."""
    values = {"outcome": outcome, "reason": reason, "closed_by": closed_by}
    rows(
        url,
        """UPDATE traces SET state = 'done', finished_at = now(), outcome = %(outcome)s, reason = %(reason)s,
            closed_by = %(closed_by)s""",
        **values,
    )


def test_a_piece_is_kept_and_its_trace_waits_for_the_others(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    root, found, said = rag()
    done = store.settlements.settle(scorer_id, [collected(0, "t-1", found, said)], [advance(0, 1)], POLICY)
    assert done.counts == {(Outcome.COLLECTED, None): 1}
    first = {
        "trace_id": "t-1",
        "state": "waiting",
        "pieces": 1,
        "steps": 2,
        "version": 1,
        "has_root": False,
        "app": None,
        "late_pieces": 0,
        "closed_by": None,
        "due_s": 300,
    }
    assert rows(database_url, TRACES) == [first]
    store.settlements.settle(scorer_id, [collected(1, "t-1", root)], [advance(1, 2)], POLICY)
    more = {"pieces": 2, "steps": 3, "version": 2, "has_root": True, "app": "tea-room", "due_s": 7}
    assert rows(database_url, TRACES) == [first | more]
    assert [tuple(row.values()) for row in rows(database_url, PLACES)] == [
        ("interactions", 0, 0, 0, "otlp"),
        ("interactions", 0, 0, 1, "otlp"),
    ]
    times = rows(database_url, "SELECT DISTINCT last_broker_time AS at FROM traces")
    assert times == [{"at": datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)}]
    assert (
        rows(database_url, "SELECT outcome, reason, results FROM ledger")
        == [{"outcome": "collected", "reason": None, "results": None}] * 2
    )


def test_the_same_record_or_the_same_steps_twice_are_one_piece(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    store.settlements.settle(scorer_id, [collected(0, "t-1", *rag())], [advance(0, 1)], POLICY)
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0")
    again = [collected(0, "t-1", *rag()), collected(1, "t-1", *rag())]
    done = store.settlements.settle(scorer_id, again, [advance(0, 2)], POLICY)
    assert done.counts == {(Outcome.COLLECTED, None): 1}
    (trace,) = rows(database_url, TRACES)
    assert (trace["pieces"], trace["steps"], trace["version"]) == (1, 3, 1)
    assert len(rows(database_url, PLACES)) == 1


def test_the_same_id_in_two_systems_is_two_traces(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    batch = [collected(0, "t-1", chain("a")), collected(1, "t-1", chain("a"), system="langfuse")]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)], POLICY)
    assert len(rows(database_url, TRACES)) == 2


def test_nothing_is_kept_of_a_partition_that_is_another_workers(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store, partitions=2)
    assert store.offsets.claim(claim(1, owner="worker-2", generation=4)) is not None
    batch = [collected(0, "t-1", *rag()), collected(0, "t-2", *rag(), partition=1)]
    done = store.settlements.settle(scorer_id, batch, [advance(0, 1), advance(0, 1, 1)], POLICY)
    assert done.fenced == (("interactions", 1),)
    assert [row["trace_id"] for row in rows(database_url, TRACES)] == ["t-1"]


def test_a_record_with_exchanges_and_pieces_is_booked_as_both(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", [0.9], threshold), replace(collected_all(0, {"t-1": rag(), "t-2": rag()}), item=2)]
    done = store.settlements.settle(scorer_id, batch, [advance(0, 1)], POLICY)
    assert done.counts == {(Outcome.SCORED, None): 1, (Outcome.COLLECTED, None): 1}
    assert rows(database_url, "SELECT outcome, results FROM ledger") == [{"outcome": "scored", "results": 2}]
    assert rows(database_url, "SELECT item, outcome FROM ledger_items ORDER BY item") == [
        {"item": 1, "outcome": "scored"},
        {"item": 2, "outcome": "collected"},
    ]
    assert [row["trace_id"] for row in rows(database_url, TRACES)] == ["t-1", "t-2"]


def test_a_late_piece_opens_its_trace_again_and_is_counted(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    root, found, said = rag()
    store.settlements.settle(scorer_id, [collected(0, "t-1", root, said)], [advance(0, 1)], POLICY)
    close(database_url)
    store.settlements.settle(scorer_id, [collected(1, "t-1", root, said)], [advance(1, 2)], POLICY)
    (same,) = rows(database_url, TRACES)
    assert (same["state"], same["late_pieces"], same["version"]) == ("done", 1, 1)
    store.settlements.settle(scorer_id, [collected(2, "t-1", found)], [advance(2, 3)], POLICY)
    (opened,) = rows(database_url, TRACES)
    assert (opened["state"], opened["late_pieces"], opened["version"], opened["closed_by"]) == ("waiting", 2, 2, None)


def test_when_the_pieces_are_gone_a_late_one_is_skipped(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    store.settlements.settle(scorer_id, [collected(0, "t-1", *rag())], [advance(0, 1)], POLICY)
    close(database_url)
    rows(database_url, "WITH gone AS (DELETE FROM trace_pieces) UPDATE traces SET emptied_at = now()")
    batch = [collected(1, "t-1", llm("late", "root")), collected_all(2, {"t-1": rag(), "t-2": rag()})]
    done = store.settlements.settle(scorer_id, batch, [advance(1, 3)], POLICY)
    assert done.counts == {(Outcome.SKIPPED, "late_piece"): 1, (Outcome.COLLECTED, None): 1}
    traces = {row["trace_id"]: row for row in rows(database_url, TRACES)}
    assert (traces["t-1"]["state"], traces["t-1"]["late_pieces"]) == ("done", 2)
    assert traces["t-2"]["pieces"] == 1


def test_a_trace_that_grows_too_large_is_due_at_once_and_keeps_no_more(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MAX_STEPS", 4)
    scorer_id, _ = prepared(store)
    store.settlements.settle(scorer_id, [collected(0, "t-1", *rag())], [advance(0, 1)], POLICY)
    batch = [collected(1, "t-1", step("a", "b"), step("b", "root")), collected(2, "t-1", step("c", "root"))]
    done = store.settlements.settle(scorer_id, batch, [advance(1, 3)], POLICY)
    assert done.counts == {(Outcome.SKIPPED, "trace_too_large"): 2}
    (trace,) = rows(database_url, TRACES)
    assert (trace["closed_by"], trace["pieces"], trace["due_s"]) == ("too_large", 1, 0)
    assert trace["state"] == "waiting"


def test_workers_that_collect_the_same_traces_at_once_wait_for_each_other_and_keep_all(
    store: Store, database_url: str
) -> None:
    workers, rounds, names = 4, 6, [f"t-{number}" for number in range(5)]
    scorer_id, _ = prepared(store, partitions=workers)
    begin = threading.Barrier(workers, timeout=30)

    def collect(partition: int) -> None:
        begin.wait()
        turned = names[partition:] + names[:partition]
        for offset in range(rounds):
            said = {name: [llm(f"{partition}-{offset}", "root")] for name in turned}
            one = collected_all(offset, said, partition=partition)
            store.settlements.settle(scorer_id, [one], [advance(offset, offset + 1, partition)], POLICY)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(collect, range(workers)))
    assert [(row["pieces"], row["version"]) for row in rows(database_url, TRACES)] == [
        (workers * rounds, workers * rounds)
    ] * len(names)


def test_what_lies_around_a_message_is_kept_for_its_letter_unless_it_is_large(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    small, large = collected(0, "t-1", chain("a")), collected(1, "t-2", chain("a"))
    headers = (("content-type", b"application/x-protobuf"), ("odd", b"\xff"), ("empty", None))
    batch = [
        replace(small, record=replace(small.record, key=b"\x00k", headers=headers)),
        replace(large, record=replace(large.record, key=b"k" * 10_000)),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)], POLICY)
    found = rows(database_url, "SELECT key, headers, value_bytes FROM trace_pieces ORDER BY record_offset")
    assert [(row["key"], row["value_bytes"]) for row in found] == [(b"\x00k", 2), (None, 2)]
    assert [row["headers"] is None for row in found] == [False, True]


RUNS = [("a", None), ("b", "a"), ("c", "b"), ("d", "b"), ("e", "a")]


def run(offset: int, key: str, within: str | None, partition: int = 0) -> Settlement:
    """A record of a log that names the step above alone."""
    pieces, _ = kept_pieces([Piece(TraceKey("runs", key), (step(key, within),), "runs", within=within)])
    return Settlement(record(offset, partition), Outcome.COLLECTED, pieces=tuple(pieces))


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1], [3, 2, 4, 1, 0]])
@pytest.mark.parametrize("at_once", [False, True])
def test_steps_that_name_the_one_above_alone_are_one_trace_in_whatever_order_they_come(
    store: Store, database_url: str, order: list[int], *, at_once: bool
) -> None:
    scorer_id, _ = prepared(store)
    came = [run(offset, *RUNS[number]) for offset, number in enumerate(order)]
    if at_once:
        store.settlements.settle(scorer_id, came, [advance(0, len(came))], POLICY)
    else:
        for offset, one in enumerate(came):
            store.settlements.settle(scorer_id, [one], [advance(offset, offset + 1)], POLICY)
    (trace,) = rows(database_url, TRACES)
    assert (trace["trace_id"], trace["pieces"], trace["steps"], trace["has_root"]) == ("a", 5, 5, True)
    kept = rows(database_url, "SELECT trace_id, within FROM trace_pieces ORDER BY trace_id")
    assert [tuple(row.values()) for row in kept] == RUNS
    # What comes of a step later need not say what lies above it.
    pieces, _ = kept_pieces([Piece(TraceKey("runs", "c"), (step("c", "b", ended_ns=99),), "runs")])
    later = Settlement(record(5), Outcome.COLLECTED, pieces=tuple(pieces))
    store.settlements.settle(scorer_id, [later], [advance(5, 6)], POLICY)
    assert [row["pieces"] for row in rows(database_url, TRACES)] == [6]


def test_workers_that_join_the_same_traces_at_once_end_with_one(store: Store, database_url: str) -> None:
    workers = len(RUNS)
    scorer_id, _ = prepared(store, partitions=workers)
    begin = threading.Barrier(workers, timeout=30)

    def collect(partition: int) -> None:
        begin.wait()
        store.settlements.settle(scorer_id, [run(0, *RUNS[partition], partition)], [advance(0, 1, partition)], POLICY)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(collect, range(workers)))
    (trace,) = rows(database_url, TRACES)
    assert (trace["trace_id"], trace["pieces"], trace["steps"]) == ("a", 5, 5)
