"""A part of the worker that runs in a thread of its own, beside the one that supervises it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from worker.errors import Stopped
from worker.runtime.stop import Stop

log = structlog.get_logger(__name__)


class Background:
    """Runs ``part``, which ends when ``stop`` is set, for as long as the context is open.

    A fault that the part cannot call asks for the stop, and is raised when the context is left. Leaving it asks for
    the stop, too, and waits for the part as long as the stop's grace has it; the process does not wait any longer.
    """

    def __init__(self, name: str, part: Callable[[], None], stop: Stop) -> None:
        self._part = part
        self._stop = stop
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(self._stop.remaining_s())
        if self._fault is not None and error is None:
            raise self._fault

    def _run(self) -> None:
        try:
            self._part()
        except Stopped:
            pass
        except Exception as fault:  # noqa: BLE001 - handed to the thread that supervises this one
            # The log comes last: it may be what is broken.
            self._fault = fault
            self._stop.set()
            log.error("background_failed", part=self._thread.name, error=type(fault).__name__)
