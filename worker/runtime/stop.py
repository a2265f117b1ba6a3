"""The stop that is asked for once, and the time that is left for what is under way."""

from __future__ import annotations

import math
import threading
import time

# With what it takes to leave the group and to close, a worker ends within thirty seconds.
GRACE_S = 20.0


class Stop:
    """Asked for by a signal. Any thread may call any method."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._event = threading.Event()
        self._asked_at = 0.0
        self._abandoned = threading.Event()

    def set(self) -> None:
        """Ask for the stop; the time for what is under way begins."""
        if not self._event.is_set():
            self._asked_at = time.monotonic()
        self._event.set()

    def is_set(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a stop is asked for, at most ``timeout_s``; whether it was."""
        return self._event.wait(timeout_s)

    def abandon(self) -> None:
        """Say that something goes on although its time is up: the process has to be ended."""
        self._abandoned.set()

    @property
    def has_abandoned(self) -> bool:
        """Whether something goes on although its time is up."""
        return self._abandoned.is_set()

    def left_s(self) -> float:
        """Seconds that anything may still take: without end before a stop, and then what is left of the grace."""
        return self.remaining_s() if self.is_set() else math.inf

    def remaining_s(self) -> float:
        """Seconds that what is under way may still take; the whole grace before a stop."""
        if not self.is_set():
            return self._grace_s
        return max(0.0, self._asked_at + self._grace_s - time.monotonic())
