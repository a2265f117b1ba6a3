"""The one thread that runs the model: inline batches first, attribution while none waits and with a guaranteed share.

What time is left goes to the background sources, in their order.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

import structlog

T = TypeVar("T")

# How often an idle engine looks for jobs that others have queued.
IDLE_LOOK_S = 0.5

# Model time is remembered over about this many seconds when shares are compared.
SHARE_WINDOW_S = 120.0

log = structlog.get_logger(__name__)


Source = Callable[[], bool]
"""Does a small piece of work that waits, such as one job, and is False if there was none."""


class Engine(Generic[T]):
    """Runs inline work that is submitted and, between it, ``attribute`` and the ``background``.

    A source that takes ``turns`` with the inline work has one after each piece of it, and more while none waits.
    While these never end, attribution still gets ``share`` of the model's time as long as it has jobs. A
    background source gets what is left: its turn comes when no inline work waits and those before it have none. Use
    as a context manager; leaving it finishes the work at hand, then stops. If that takes longer than ``grace_s()``
    seconds (None: as long as it takes) it is abandoned: ``abandoned`` is then true, and the process has to be ended.
    ``beat`` is called between any two pieces of work, ``name`` is the thread's.
    """

    def __init__(
        self,
        attribute: Source | None,
        share: float,
        background: Sequence[Source] = (),
        grace_s: Callable[[], float | None] = lambda: None,
        beat: Callable[[], None] = lambda: None,
        name: str = "engine",
    ) -> None:
        self._attribution = None if attribute is None else _Queue(attribute)
        self._background = [_Queue(source) for source in background]
        self._turns: _Queue | None = None
        self._has_turn = self._turns_busy = False
        self._in_turn = threading.Lock()
        self._ledger = ShareLedger(share)
        self._wake = threading.Condition()
        self._waiting: deque[tuple[Callable[[], T], Future[T]]] = deque()
        self._stopping = False
        self._grace_s = grace_s
        self._beat = beat
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._fault: BaseException | None = None

    def __enter__(self) -> Engine[T]:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(self._grace_s())

    @contextmanager
    def turns(self, source: Source) -> Iterator[None]:
        """Let the source take turns until the context is left, which waits for its work at hand.

        If that takes longer than the engine's grace it is left to it.
        """
        self._turns = _Queue(source)
        try:
            yield
        finally:
            self._turns = None
            grace_s = self._grace_s()
            if self._in_turn.acquire(timeout=-1 if grace_s is None else max(0.0, grace_s)):
                self._in_turn.release()

    @property
    def abandoned(self) -> bool:
        """Whether work goes on although the context was left."""
        return self._stopping and self._thread.is_alive()

    def check(self) -> None:
        """Raise what ended the engine's thread, if something did."""
        if self._fault is not None:
            raise self._fault

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Queue inline work. Several may wait, in turn: each caller waits for its future before it submits the next."""
        future: Future[T] = Future()
        with self._wake:
            self._waiting.append((work, future))
            self._wake.notify()
        return future

    def _run(self) -> None:
        try:
            while not self._stopping or self._waiting:
                self._beat()
                if not (self._run_attribution() or self._run_turn() or self._run_background()):
                    self._run_inline()
        except BaseException as fault:  # noqa: BLE001 - handed to the thread that supervises this one
            log.error("engine_failed", error=type(fault).__name__)
            self._fault = fault

    def _run_turn(self) -> bool:
        if self._stopping or (self._waiting and not self._has_turn):
            return False
        self._has_turn = False
        started = time.monotonic()
        with self._in_turn:
            turns = self._turns
            self._turns_busy = turns is not None and turns.run()
        if self._turns_busy:
            self._ledger.spent(inline_s=time.monotonic() - started)
        return self._turns_busy

    def _run_attribution(self) -> bool:
        if self._attribution is None or self._stopping:
            return False
        if (self._waiting or self._turns_busy) and not self._ledger.attribution_is_behind():
            return False
        started = time.monotonic()
        found = self._attribution.run()
        if found:
            self._ledger.spent(attribution_s=time.monotonic() - started)
        return found

    def _run_background(self) -> bool:
        return any(not self._waiting and not self._stopping and queue.run() for queue in self._background)

    def _run_inline(self) -> None:
        with self._wake:
            if not self._waiting and not self._stopping:
                self._wake.wait(IDLE_LOOK_S)
            if not self._waiting:
                return
            work, future = self._waiting.popleft()
        started = time.monotonic()
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - the submitter decides
            future.set_exception(error)
        self._ledger.spent(inline_s=time.monotonic() - started)
        self._has_turn = True


class _Queue:
    """A source that is left alone for a while once it had nothing."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._look_again_at = 0.0

    def run(self) -> bool:
        """Whether there was something to do, which is done then."""
        if time.monotonic() < self._look_again_at:
            return False
        found = self._source()
        if not found:
            self._look_again_at = time.monotonic() + IDLE_LOOK_S
        return found


class ShareLedger:
    """Who had the model for how long lately, to keep attribution's guaranteed share. Old time fades."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._inline_s = 0.0
        self._attribution_s = 0.0

    def spent(self, *, inline_s: float = 0.0, attribution_s: float = 0.0) -> None:
        """Add model time."""
        fade = 0.5 ** ((inline_s + attribution_s) / SHARE_WINDOW_S)
        self._inline_s = self._inline_s * fade + inline_s
        self._attribution_s = self._attribution_s * fade + attribution_s

    def attribution_is_behind(self) -> bool:
        """Whether attribution has had less than its share."""
        return self._attribution_s < self._share * (self._inline_s + self._attribution_s)
