"""The worker processes of a soak, started again by a supervisor when they end, as an operator's would do it."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from tests.soak.fate import Point, foretell
from tests.soak.journal import Journal

LOOK_S = 0.05
# The second worker, whenever there is one, has a clock that is so far ahead.
SKEWED_SLOT = 1
AHEAD_S = 120.0


@dataclass(slots=True)
class Member:
    """One worker process, from its start to its end. ``forgiven`` are the exit statuses that we have asked for."""

    slot: int
    process: BaseProcess
    log: Path
    fate: Path
    forgiven: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def pid(self) -> int:
        """Its process number."""
        return int(self.process.pid or 0)

    @property
    def status(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        # Two threads that ask at once would both read what is there once.
        with self.lock:
            return self.process.exitcode

    @property
    def name(self) -> str:
        """What its name as an owner of partitions begins with."""
        return f"{socket.gethostname()}-{self.pid}-"

    def is_owner(self, owner: str) -> bool:
        """Whether this owner of a partition is it."""
        return owner.startswith(self.name)

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self.status is None

    @property
    def is_doomed(self) -> bool:
        """Whether it was told to end, or fated to."""
        return bool(self.forgiven)

    @property
    def stands_still(self) -> bool:
        """Whether it was stopped by a signal and not continued."""
        return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)

    def send(self, number: signal.Signals, *forgiven: int) -> None:
        """Send a signal that may end it with one of these statuses."""
        self.forgiven.update(forgiven)
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def die_at(self, point: Point) -> None:
        """Let it kill itself at the next pass of a point."""
        self.forgiven.add(-signal.SIGKILL)
        foretell(self.fate, point, signal.SIGKILL)

    def spare(self) -> None:
        """Take its fate back."""
        self.fate.unlink(missing_ok=True)
        self.forgiven.clear()

    def stand_still_at(self, point: Point) -> None:
        """Let it stop itself at the next pass of a point."""
        foretell(self.fate, point, signal.SIGSTOP)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of one name in its log."""
        return [one for one in log_events(self.log) if one.get("event") == name]


class Crew:
    """As many workers as ``resize`` asked for. A thread looks after them; use as a context manager.

    ``skewed`` are the names of those whose clock was ahead.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str], journal: Journal) -> None:
        self.directory = directory
        self.size = 0
        self.restarts = 0
        self.unexpected: list[str] = []
        self.skewed: list[str] = []
        self._environment = environment
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.soak.worker"])
        self._journal = journal
        self._lock = threading.RLock()
        self._members: dict[int, Member] = {}
        self._started = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="supervisor")

    def __enter__(self) -> Crew:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        for member in self._members.values():
            member.send(signal.SIGKILL)

    def members(self) -> list[Member]:
        """Those that run now and are not about to end."""
        with self._lock:
            return [member for member in self._members.values() if member.alive and not member.is_doomed]

    def resize(self, size: int) -> list[Member]:
        """Start workers, or ask the last ones to stop; gives those that leave."""
        with self._lock:
            self.size = size
            for slot in range(size):
                if slot not in self._members:
                    self._members[slot] = self._start(slot)
            leaving = [self._members.pop(slot) for slot in sorted(self._members) if slot >= size]
        for member in leaving:
            member.send(signal.SIGTERM, 0)
        return leaving

    def logs(self) -> Iterator[Path]:
        """The logs of all workers that there ever were."""
        yield from sorted(self.directory.glob("worker-*.log"))

    def _supervise(self) -> None:
        while not self._done.wait(LOOK_S):
            with self._lock:
                ended = [member for member in self._members.values() if not member.alive]
                for member in ended:
                    self._replace(member)

    def _replace(self, member: Member) -> None:
        status = member.status
        self._journal.note("ended", name=member.name, log=member.log.name, status=status)
        if status not in member.forgiven:
            self.unexpected.append(f"{member.log.name} ended with status {status}")
        self._members[member.slot] = self._start(member.slot)
        self.restarts += 1

    def _start(self, slot: int) -> Member:
        self._started += 1
        log = self.directory / f"worker-{self._started:03}.log"
        fate = log.with_suffix(".fate")
        ahead_s = AHEAD_S if slot == SKEWED_SLOT else 0.0
        environment = {**self._environment, "SOAK_FATE_FILE": str(fate), "SOAK_CLOCK_AHEAD_S": str(ahead_s)}
        process = self._processes.Process(target=_work, args=(environment, log))
        process.start()
        member = Member(slot, process, log, fate)
        if ahead_s:
            self.skewed.append(member.name)
        self._journal.note("started", name=member.name, log=log.name)
        return member


def _work(environment: Mapping[str, str], log: Path) -> None:
    from tests.soak.worker import work  # imports torch, which is there already in a fork and which we can spare

    work(environment, log)


def log_events(log: Path) -> Iterator[dict[str, Any]]:
    """The events of a log; a line that is none, such as a traceback's, is left out."""
    for line in log.read_text("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                # The last line of a worker that was killed.
                continue


def hold(condition: Callable[[], object], deadline_s: float) -> bool:
    """Look until the condition holds; False if it does not in time."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_S)
    return True
