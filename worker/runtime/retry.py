"""Waiting while a transient fault lasts: pause and try again, with growing and jittered pauses, as long as needed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

import structlog

from worker.broker.errors import BrokerUnavailable
from worker.errors import DocumentsUnavailable, SchemasUnavailable, ScorerUnavailable, Stopped
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.errors import StoreUnavailable

T = TypeVar("T")

FIRST_PAUSE_S = 0.5
# What was away is noticed within this time of its return.
LONGEST_PAUSE_S = 10.0
TRANSIENT = (StoreUnavailable, BrokerUnavailable, ScorerUnavailable, DocumentsUnavailable, SchemasUnavailable)

log = structlog.get_logger(__name__)


class RetryPolicy:
    """Outlasts transient faults until a stop is asked for; one part of the worker's, which shows so that it lives.

    ``part`` is its name for liveness, which expects a sign of life every ``within_s`` seconds.
    """

    def __init__(self, stop: Stop, telemetry: Telemetry, *, part: str, within_s: float) -> None:
        self._stop = stop
        self._telemetry = telemetry
        self._part = part
        telemetry.liveness.expect(part, within_s)

    def beat(self) -> None:
        """Show that the part lives."""
        self._telemetry.liveness.beat(self._part)

    def call(self, action: Callable[[], T], *, name: str) -> T:
        """Run ``action`` until database, broker and device let it succeed. ``name`` is a fixed word.

        Raises Stopped if a stop is asked for meanwhile, and whatever is not transient at once.
        """
        attempt = 0
        while True:
            self.beat()
            try:
                result = action()
            except TRANSIENT as error:
                pause = pause_s(attempt)
                attempt += 1
                log.warning(
                    "transient_fault", action=name, attempt=attempt, retry_in_s=round(pause, 2), error=str(error)
                )
                self._telemetry.metrics.retried(name)
                self._telemetry.readiness.set(name, str(error))
                if self._stop.wait(pause):
                    raise Stopped(name) from error
            else:
                if attempt:
                    self._telemetry.readiness.set(name, None)
                return result


def pause_s(attempt: int, *, first_s: float | None = None, longest_s: float | None = None) -> float:
    """Seconds before try ``attempt`` + 1: doubling from ``first_s`` to ``longest_s``, between half and the whole of it.

    None: as for what was away (FIRST_PAUSE_S, LONGEST_PAUSE_S).
    """
    first = FIRST_PAUSE_S if first_s is None else first_s
    whole = min(LONGEST_PAUSE_S if longest_s is None else longest_s, first * 2.0 ** min(attempt, 16))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
