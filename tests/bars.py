"""What tests do at length: the bars of docs/reliability.md, and how many hostile messages are made up.

It is done in full with GASP_TEST_FULL=1 (`make bars`), else in a short form.
"""

from __future__ import annotations

import os
from typing import TypeVar

FULL = os.environ.get("GASP_TEST_FULL") == "1"

Number = TypeVar("Number", int, float)


def bar(full: Number, short: Number) -> Number:
    """The full figure of a bar, or the one that the ordinary suite has time for."""
    return full if FULL else short
