"""The contexts between none and the whole, as what is left out of each."""

from __future__ import annotations

from collections.abc import Sequence

# An answer costs a bounded number of prompts, whatever the number of its passages.
MAX_STEPS = 8


def growing(groups: Sequence[int]) -> list[tuple[int, ...]]:
    """What is taken out of a context of these groups for each one between none of it and all, shortest context first.

    With them, there are as many steps from none to all as groups, but at most MAX_STEPS of as even a size as can be.
    """
    steps = min(len(groups), MAX_STEPS)
    return [tuple(groups[len(groups) * step // steps :]) for step in range(1, steps)]
