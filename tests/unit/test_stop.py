from __future__ import annotations

import threading
import time

from worker.runtime.stop import Stop


def test_the_whole_grace_is_left_until_a_stop_is_asked_for_and_then_it_runs_out() -> None:
    stop = Stop(grace_s=0.05)
    assert (stop.is_set(), stop.remaining_s()) == (False, 0.05)
    stop.set()
    assert stop.is_set()
    assert 0.0 <= stop.remaining_s() <= 0.05
    while stop.remaining_s() > 0:
        assert not threading.Event().wait(0.01)


def test_asking_twice_does_not_begin_the_grace_anew() -> None:
    stop = Stop(grace_s=100.0)
    stop.set()
    asked_at = time.monotonic()
    threading.Event().wait(0.05)
    stop.set()
    at_most_s = 100.0 - (time.monotonic() - asked_at)
    assert stop.remaining_s() <= at_most_s


def test_who_waits_is_woken() -> None:
    stop = Stop()
    assert not stop.wait(0.0)
    threading.Timer(0.01, stop.set).start()
    assert stop.wait(10.0)
