"""How far a soak is: asks the database from a thread of its own, and says so in one line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import psycopg

from tests.soak.database import Database

LOOK_S = 0.2
LIVE_EVERY_S = 1.0
# Where nobody looks on, as in CI, each line stays.
QUIET_EVERY_S = 15.0


class Progress:
    """``settled`` is the last number that the database gave; it may be away. Use as a context manager."""

    def __init__(self, database: Database, describe: Callable[[int], str]) -> None:
        self.settled = 0
        self._database = database
        self._describe = describe
        self._started_at = self._shown_at = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress")

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started_at

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        print(file=sys.stderr)

    def _run(self) -> None:
        live = sys.stderr.isatty()
        while not self._done.wait(LOOK_S):
            self._look()
            if time.monotonic() > self._shown_at + (LIVE_EVERY_S if live else QUIET_EVERY_S):
                self._shown_at = time.monotonic()
                line = f"{self.seconds:5.0f} s  {self._describe(self.settled)}"
                print(f"{line}  ", end="\r" if live else "\n", file=sys.stderr, flush=True)

    def _look(self) -> None:
        try:
            self.settled = self._database.settled()
        except psycopg.OperationalError:
            # It is away for the moment.
            return
