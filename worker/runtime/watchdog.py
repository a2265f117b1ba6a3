"""The watchdog: ends a process in which a part has gone silent, so that its supervisor starts it anew."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from typing import Self

import structlog

# EX_SOFTWARE of sysexits.h.
WEDGED_STATUS = 70
# Longer than a process is stopped and continued in practice: the second line cannot tell that from being frozen.
FROZEN_WITHIN_S = 300.0
LOOK_EVERY_S = 1.0
LAST_WORDS_S = 5.0
STDERR = 2

log = structlog.get_logger(__name__)


class Liveness:
    """When each component last gave a sign of life, by the monotonic clock. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._within_s: dict[str, float] = {}
        # None: excused.
        self._heard_at: dict[str, float | None] = {}

    def expect(self, name: str, within_s: float) -> None:
        """From now on this component has to give a sign of life at least every ``within_s`` seconds."""
        with self._lock:
            self._within_s[name] = within_s
            self._heard_at[name] = time.monotonic()

    def beat(self, name: str) -> None:
        """The component lives; an excuse has ended. Raises KeyError if it is not expected."""
        with self._lock:
            self._require(name)
            self._heard_at[name] = time.monotonic()

    def excuse(self, name: str) -> None:
        """The component has nothing to do and may be silent until it beats again. Raises KeyError as ``beat``."""
        with self._lock:
            self._require(name)
            self._heard_at[name] = None

    def forgive(self, seconds: float) -> None:
        """How many of the last seconds the process itself stood still, so that no component could give a sign."""
        with self._lock:
            now = time.monotonic()
            for name, heard_at in self._heard_at.items():
                if heard_at is not None:
                    self._heard_at[name] = min(now, heard_at + max(seconds, 0.0))

    def silent(self, now: float | None = None) -> tuple[tuple[str, float], ...]:
        """The components that have been silent for longer than they may, each with its seconds of silence."""
        now = time.monotonic() if now is None else now
        with self._lock:
            silences = [(name, now - at) for name, at in self._heard_at.items() if at is not None]
            return tuple((name, silence) for name, silence in silences if silence > self._within_s[name])

    def _require(self, name: str) -> None:
        if name not in self._within_s:
            raise KeyError(name)


class Watchdog:
    """Looks after a process from a thread of its own. Use as a context manager, once at a time in a process.

    When a component is silent for longer than it may, the event ``wedged`` is logged, the stacks of all threads go to
    standard error (places in the code only, no values), and the process ends at once with status 70. Nothing is closed:
    what is held in Postgres and Kafka is safe against that at any moment.

    This thread needs the interpreter's lock and can do nothing while C code holds it. Therefore each look also winds
    up the timer of faulthandler, of which a process has one and which needs no lock: if it is not wound up again
    within ``frozen_within_s``, it writes the stacks and ends the process with status 1. It ends the process with 1,
    too, if the last words of a wedged one cannot be written within seconds, as when nobody reads standard error.

    Time in which the looks themselves came late is nobody's silence: a process that was stopped and continued, or got
    no CPU, lives. Only if it was stopped for longer than ``frozen_within_s`` does the timer end it.
    """

    def __init__(
        self, liveness: Liveness, *, look_every_s: float = LOOK_EVERY_S, frozen_within_s: float = FROZEN_WITHIN_S
    ) -> None:
        self._liveness = liveness
        self._look_every_s = look_every_s
        self._frozen_within_s = frozen_within_s
        self._looked_at = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _run(self) -> None:
        self._looked_at = time.monotonic()
        self._wind_up()
        while not self._done.wait(self._look_every_s):
            self._look(time.monotonic())
            self._wind_up()

    def _look(self, now: float) -> None:
        self._liveness.forgive(now - self._looked_at - self._look_every_s)
        self._looked_at = now
        silent = self._liveness.silent(now)
        if silent:
            _end_process(silent)

    def _wind_up(self) -> None:
        faulthandler.dump_traceback_later(self._frozen_within_s, exit=True, file=STDERR)


def _end_process(silent: tuple[tuple[str, float], ...]) -> None:
    """Say what is silent and where every thread is, then end the process with status 70, or 1 if nobody listens."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        faulthandler.dump_traceback_later(LAST_WORDS_S, exit=True, file=nowhere)
        for component, seconds in silent:
            log.critical("wedged", component=component, seconds=round(seconds, 1))
        faulthandler.dump_traceback(STDERR, all_threads=True)
    finally:
        os._exit(WEDGED_STATUS)
