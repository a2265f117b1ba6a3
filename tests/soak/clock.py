"""A worker whose clock is wrong: the time of its process is another one than that of all the others."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, tzinfo
from typing import Any

_PACKAGES = ("apscheduler", "kafka", "structlog", "worker")


def set_clock_ahead(seconds: float) -> None:
    """Let this process take it for ``seconds`` later than it is, from now on. Time that passes passes as before."""
    right = time.time
    delta = timedelta(seconds=seconds)

    class Kind(type):
        """So that times which were made elsewhere are times here, too."""

        def __instancecheck__(cls, other: object) -> bool:
            return isinstance(other, datetime)

    class Ahead(datetime, metaclass=Kind):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + delta

    time.time = lambda: right() + seconds
    # A type of C takes no other method: who has imported it already is given another one.
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in _PACKAGES and getattr(module, "datetime", None) is datetime:
            module.datetime = Ahead  # type: ignore[attr-defined]  # found there just now
