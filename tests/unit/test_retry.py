"""Waiting out what passes by itself."""

from __future__ import annotations

import pytest

from worker.broker.errors import BrokerMisconfigured, BrokerUnavailable
from worker.errors import Stopped
from worker.runtime import retry as retry_module
from worker.runtime.retry import LONGEST_PAUSE_S, RetryPolicy, pause_s
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.errors import StoreUnavailable


def retry(stop: Stop) -> RetryPolicy:
    return RetryPolicy(stop, Telemetry(), part="test", within_s=60)


def test_a_transient_fault_is_tried_again_until_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_module, "FIRST_PAUSE_S", 0.001)
    faults = [StoreUnavailable("away"), BrokerUnavailable("away"), StoreUnavailable("away")]

    def action() -> str:
        if faults:
            raise faults.pop()
        return "done"

    assert retry(Stop()).call(action, name="test") == "done"
    assert faults == []


def test_a_permanent_fault_is_raised_at_once() -> None:
    def action() -> None:
        raise BrokerMisconfigured("no such user")

    with pytest.raises(BrokerMisconfigured):
        retry(Stop()).call(action, name="test")


def test_a_stop_ends_the_waiting() -> None:
    stop = Stop()
    stop.set()

    def action() -> None:
        raise StoreUnavailable("away")

    with pytest.raises(Stopped):
        retry(stop).call(action, name="test")


def test_pauses_grow_are_jittered_and_have_an_end() -> None:
    assert 0.25 <= pause_s(0) <= 0.5
    assert 2.0 <= pause_s(3) <= 4.0
    assert all(LONGEST_PAUSE_S / 2 <= pause_s(attempt) <= LONGEST_PAUSE_S for attempt in (10, 100, 10_000))
