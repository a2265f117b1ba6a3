"""Who gets the model: inline work first, attribution in the gaps and with its share."""

from __future__ import annotations

import threading

import pytest

from worker.runtime.engine import Engine, ShareLedger

WAIT_S = 10.0


def test_inline_work_gives_its_result_and_its_fault_to_the_submitter() -> None:
    def fail() -> int:
        raise LookupError("gone")

    with Engine[int](None, 0.1) as engine:
        assert engine.submit(lambda: 7).result(WAIT_S) == 7
        with pytest.raises(LookupError):
            engine.submit(fail).result(WAIT_S)
        assert engine.submit(lambda: 8).result(WAIT_S) == 8
        engine.check()


def test_inline_work_of_several_submitters_is_done_in_turn() -> None:
    gate, order = threading.Event(), list[int]()

    def wait() -> None:
        gate.wait(WAIT_S)

    with Engine[None](None, 0.1) as engine:
        engine.submit(wait)
        futures = [engine.submit(lambda number=number: order.append(number)) for number in range(3)]  # type: ignore[misc] # lambda's default
        gate.set()
        for future in futures:
            future.result(WAIT_S)
    assert order == [0, 1, 2]


def test_attribution_runs_when_nothing_inline_waits() -> None:
    ran = threading.Event()

    def attribute() -> bool:
        ran.set()
        return False

    with Engine[int](attribute, 0.1):
        assert ran.wait(WAIT_S)


def test_work_that_waits_when_the_engine_is_closed_is_still_done() -> None:
    with Engine[int](None, 0.1) as engine:
        future = engine.submit(lambda: 3)
    assert future.result(0) == 3


def test_a_fault_in_attribution_is_kept_for_the_supervising_thread() -> None:
    failed = threading.Event()

    def attribute() -> bool:
        failed.set()
        raise LookupError("broken")

    with Engine[int](attribute, 0.1) as engine:
        assert failed.wait(WAIT_S)
    with pytest.raises(LookupError):
        engine.check()


def test_attribution_gets_its_share_of_an_endless_stream_of_inline_work() -> None:
    ledger = ShareLedger(0.1)
    attribution = inline = 0
    for _ in range(1_000):
        if ledger.attribution_is_behind():
            ledger.spent(attribution_s=3.0)
            attribution += 3
        else:
            ledger.spent(inline_s=1.0)
            inline += 1
    assert attribution / (attribution + inline) == pytest.approx(0.1, abs=0.02)


def test_a_share_of_zero_leaves_attribution_to_the_gaps() -> None:
    ledger = ShareLedger(0.0)
    ledger.spent(inline_s=5.0)
    assert not ledger.attribution_is_behind()


def test_a_background_source_has_its_turn_once_attribution_has_nothing_left() -> None:
    order: list[str] = []
    done = threading.Event()

    def attribute() -> bool:
        order.append("attribution")
        return order.count("attribution") <= 3

    def rescore() -> bool:
        order.append("rescoring")
        done.set()
        return False

    with Engine[int](attribute, 0.1, (rescore,)):
        assert done.wait(WAIT_S)
    assert order[:5] == ["attribution"] * 4 + ["rescoring"]


def test_inline_work_that_comes_meanwhile_goes_before_more_of_the_background() -> None:
    order: list[str] = []
    done = threading.Event()

    def inline() -> int:
        order.append("inline")
        return 1

    def first() -> bool:
        order.append("first")
        if len(order) == 1:
            engine.submit(inline)
        return len(order) == 1

    def second() -> bool:
        order.append("second")
        done.set()
        return False

    engine = Engine[int](None, 0.1, (first, second))
    with engine:
        assert done.wait(WAIT_S)
    assert order == ["first", "inline", "first", "second"]


def test_a_background_source_does_not_run_while_inline_work_waits_behind_attribution() -> None:
    order: list[str] = []
    done = threading.Event()

    def attribute() -> bool:
        order.append("attribution")
        future = engine.submit(lambda: order.append("inline"))
        future.add_done_callback(lambda _: done.set())
        return False

    def rescore() -> bool:
        order.append("rescoring")
        return True

    engine = Engine[None](attribute, 0.0, (rescore,))
    with engine:
        assert done.wait(WAIT_S)
    assert order[:2] == ["attribution", "inline"]


def test_a_source_that_takes_turns_has_one_after_each_piece_of_inline_work() -> None:
    order: list[str] = []
    gate = threading.Event()

    def turn() -> bool:
        order.append("turn")
        return True

    def hold() -> None:
        assert gate.wait(WAIT_S)
        order.append("inline")

    with Engine[None](None, 0.1) as engine:
        held = engine.submit(hold)
        others = [engine.submit(lambda: order.append("inline")) for _ in range(5)]
        with engine.turns(turn):
            gate.set()
            for future in (held, *others):
                future.result(WAIT_S)
            mixed = order[order.index("inline") :]
    # Between the pieces that waited there was one turn each, and no more.
    while "turn" in mixed[-1:]:
        mixed.pop()
    assert mixed == ["inline", *["turn", "inline"] * 5]


def test_attribution_has_its_share_beside_turns_that_never_end() -> None:
    attributed = threading.Event()

    def attribute() -> bool:
        attributed.set()
        return True

    with Engine[None](attribute, 0.5) as engine, engine.turns(lambda: True):
        assert attributed.wait(WAIT_S)


def test_leaving_the_turns_waits_for_the_one_at_hand_and_lets_none_follow() -> None:
    begun, gate, ended = threading.Event(), threading.Event(), list[str]()

    def turn() -> bool:
        begun.set()
        assert gate.wait(WAIT_S)
        ended.append("turn")
        return True

    with Engine[None](None, 0.1) as engine:
        with engine.turns(turn):
            assert begun.wait(WAIT_S)
            gate.set()
        turns = len(ended)
        engine.submit(lambda: None).result(WAIT_S)
        engine.submit(lambda: None).result(WAIT_S)
        assert turns >= 1
        assert len(ended) == turns
