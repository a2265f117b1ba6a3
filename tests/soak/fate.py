"""How a soak worker dies, or stands still, at an exact point of its work.

The harness writes ``<point> <signal>`` into the worker's fate file; at the next pass of that point the worker removes
the file and sends the signal to itself. The points are wrapped around the worker's parts from outside.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from tests.soak.scorer import SoakScorer
from worker.broker.rebalance import Listener
from worker.broker.source import RecordSource
from worker.store.settlements import Settlements


class Point(StrEnum):
    """Where a worker is when it happens."""

    AFTER_POLL = "after_poll"
    AFTER_SCORE = "after_score"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    IN_KAFKA_COMMIT = "in_kafka_commit"
    IN_REVOKE = "in_revoke"


def foretell(path: Path, point: Point, what: signal.Signals) -> None:
    """Write the fate; it is there as a whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(f"{point} {what.name}", encoding="utf-8")
    draft.replace(path)


class Fate:
    """The fate that is written in a file, if any."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def meet(self, point: Point) -> None:
        """Send ourselves the signal if it is due here."""
        try:
            where, what = self._path.read_text(encoding="utf-8").split()
        except FileNotFoundError:
            return
        if where == point:
            self._path.unlink()
            os.kill(os.getpid(), signal.Signals[what])


def wrap_parts(fate: Fate) -> None:
    """Make the worker meet its fate at every point, from now on and in the whole process."""
    _after(RecordSource, "poll", lambda records: fate.meet(Point.AFTER_POLL) if records else None)
    _after(SoakScorer, "score", lambda _: fate.meet(Point.AFTER_SCORE))
    _wrap_settle(fate)
    _after(RecordSource, "commit", lambda _: fate.meet(Point.IN_KAFKA_COMMIT))
    _wrap_revoke(fate)


def _after(owner: type[Any], name: str, then: Callable[[Any], None]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        then(result)
        return result

    setattr(owner, name, wrapped)


def _wrap_settle(fate: Fate) -> None:
    """Only the transaction that settles a batch counts, not those that read."""
    settling = threading.local()
    original = Settlements.settle

    @wraps(original)
    def settle(*arguments: Any, **options: Any) -> Any:
        settling.now = True
        try:
            result = original(*arguments, **options)
        finally:
            settling.now = False
        fate.meet(Point.AFTER_COMMIT)
        return result

    def before_commit(_: object) -> None:
        if getattr(settling, "now", False):
            fate.meet(Point.BEFORE_COMMIT)

    event.listen(Engine, "commit", before_commit)
    Settlements.settle = settle  # type: ignore[method-assign]  # the point is to wrap it


def _wrap_revoke(fate: Fate) -> None:
    original = Listener.on_partitions_revoked

    @wraps(original)
    async def wrapped(self: Listener, partitions: Iterable[Any]) -> None:
        if partitions:
            fate.meet(Point.IN_REVOKE)
        await original(self, partitions)

    Listener.on_partitions_revoked = wrapped  # type: ignore[assignment, method-assign]  # as above
