"""Things in order, as many at a time as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def fitting(
    items: Iterable[T],
    size: Callable[[T], int],
    limit: int,
    clashes: Callable[[Sequence[T], T], bool] = lambda _group, _item: False,
) -> Iterator[list[T]]:
    """Yield groups whose sizes sum to at most ``limit``, in order; one that is larger comes alone.

    An item that ``clashes`` with the group so far begins the next one.
    """
    group: list[T] = []
    used = 0
    for item in items:
        if group and (used + size(item) > limit or clashes(group, item)):
            yield group
            group, used = [], 0
        group.append(item)
        used += size(item)
    if group:
        yield group
