"""Work that is done app by app, so that what is wrong with one keeps no other from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import structlog

from worker.errors import Stopped, WorkerError
from worker.store.errors import StoreBusy, StoreConflict, StoreNotReady, StoreTimeout, StoreUnavailable

Result = TypeVar("Result")

# What a database says that is there, of a single piece of work.
_OF_ONE = (StoreTimeout, StoreBusy, StoreConflict)

log = structlog.get_logger(__name__)


def each_app(job: str, work: Iterable[tuple[str | None, Callable[[], Result]]]) -> Iterator[Result]:
    """What the work on each app gives (None: on all that have nothing of their own); a failure is logged and left out.

    Raises Stopped, and a fault of the database as a whole, at once; WorkerError at the end if an app failed.
    """
    done = failed = 0
    for app, do in work:
        try:
            result = do()
        except Stopped:
            raise
        except Exception as error:
            if isinstance(error, StoreNotReady | StoreUnavailable) and not isinstance(error, _OF_ONE):
                raise
            failed += 1
            log.error("app_failed", job=job, app=app, error=type(error).__name__)
        else:
            done += 1
            yield result
    if failed:
        raise WorkerError(f"{failed} of {done + failed} apps failed; the log names them")
