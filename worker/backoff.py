"""Waiting out transient faults: pause, try again, with growing and jittered pauses, for as long as it takes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

import structlog

from worker.broker.errors import BrokerUnavailable
from worker.errors import Stopped
from worker.store.errors import StoreUnavailable

T = TypeVar("T")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

log = structlog.get_logger(__name__)


def outlast(action: Callable[[], T], *, name: str, stop: threading.Event) -> T:
    """Run ``action`` until the database and the broker let it succeed.

    Raises Stopped if a stop is asked for meanwhile, and whatever is not transient at once.
    """
    attempt = 0
    while True:
        try:
            return action()
        except (StoreUnavailable, BrokerUnavailable) as error:
            pause = pause_s(attempt)
            attempt += 1
            log.warning("transient_fault", action=name, attempt=attempt, retry_in_s=round(pause, 2), error=str(error))
            if stop.wait(pause):
                raise Stopped(name) from error


def pause_s(attempt: int) -> float:
    """Seconds before try ``attempt`` + 1: doubling, at most LONGEST_PAUSE_S, between half and the whole of it."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
