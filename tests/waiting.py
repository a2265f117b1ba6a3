"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

# As long as a test may last on a machine on which all else is begun at once.
DEADLINE_S = 180.0
LOOK_S = 0.05


def wait_until(condition: Callable[[], object], *, what: str, deadline_s: float = DEADLINE_S) -> None:
    """Look until the condition holds; fail with what was waited for."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not after {deadline_s:g} s"
        time.sleep(LOOK_S)
