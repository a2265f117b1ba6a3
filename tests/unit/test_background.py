"""A part in a thread of its own: how it ends, and how it ends the others."""

from __future__ import annotations

import threading

import pytest

from worker.errors import Stopped
from worker.runtime.background import Background
from worker.runtime.stop import Stop

DEADLINE_S = 10.0


def test_leaving_asks_the_part_to_stop_and_waits_for_it() -> None:
    stop, ended = Stop(), threading.Event()

    def part() -> None:
        stop.wait(DEADLINE_S)
        ended.set()

    with Background("part", part, stop):
        assert not ended.is_set()
    assert ended.is_set()


def test_a_fault_asks_for_the_stop_and_is_raised_when_the_context_is_left() -> None:
    stop = Stop()

    def part() -> None:
        raise OSError("away for good")

    with pytest.raises(OSError, match="away for good"), Background("part", part, stop):
        assert stop.wait(DEADLINE_S)


def test_a_part_that_was_stopped_while_waiting_ends_without_a_fault() -> None:
    def part() -> None:
        raise Stopped("waiting")

    with Background("part", part, Stop()):
        pass


def test_a_fault_does_not_hide_the_one_that_is_under_way() -> None:
    stop = Stop()

    def part() -> None:
        raise OSError("second")

    background = Background("part", part, stop)
    background.__enter__()
    assert stop.wait(DEADLINE_S)
    background.__exit__(ValueError, ValueError("first"), None)


def test_a_part_that_does_not_end_is_waited_for_no_longer_than_the_grace() -> None:
    let_go = threading.Event()

    def part() -> None:
        let_go.wait(DEADLINE_S)

    with Background("part", part, Stop(grace_s=0.1)):
        pass
    assert not let_go.is_set()
    let_go.set()
