"""Which chain a step belongs to whose parent was not seen, as far as that is clear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from schemas.traces.step import Step


def chains_of_strays(steps: Sequence[Step], strays: Iterable[int], chains: Sequence[int]) -> dict[int, int]:
    """Return, for strays, the chain in whose time they began, if it is the only one; or the only one that there is.

    ``strays`` and ``chains`` are positions in ``steps``, which are in order of time. Takes linear time but for sorting.
    """
    found: dict[int, int] = {}
    running: list[tuple[float, int]] = []
    pending = iter(chains)
    following = next(pending, None)
    for stray in sorted(strays):
        begun = steps[stray].begun_ns
        while following is not None and begun is not None and _begun(steps[following]) <= begun:
            heappush(running, (_ended(steps[following]), following))
            following = next(pending, None)
        while begun is not None and running and running[0][0] < begun:
            heappop(running)
        if begun is not None and len(running) == 1:
            found[stray] = running[0][1]
        elif len(chains) == 1:
            found[stray] = chains[0]
    return found


def _begun(step: Step) -> float:
    return -math.inf if step.begun_ns is None else step.begun_ns


def _ended(step: Step) -> float:
    return math.inf if step.ended_ns is None else step.ended_ns
