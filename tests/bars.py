"""The bars of docs/reliability.md: their full length with GASP_TEST_FULL=1 (`make bars`), else a short form."""

from __future__ import annotations

import os

FULL = os.environ.get("GASP_TEST_FULL") == "1"


def bar(full: float, short: float) -> float:
    """The full figure of a bar, or the one that the ordinary suite has time for."""
    return full if FULL else short
