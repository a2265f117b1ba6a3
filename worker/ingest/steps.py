"""The way of a batch through its partitions, in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from worker.rules.records import Record
from worker.rules.settlement import Advance


class Steps:
    """Cuts the advances of a batch that is booked in parts. Records are taken in their order, each once."""

    def __init__(self, advances: Sequence[Advance]) -> None:
        self._left = {advance.partition: advance for advance in advances}

    def through(self, part: Sequence[Record], rest: Sequence[Record]) -> list[Advance]:
        """The steps over ``part``, which go to the end of the batch where none of a partition's records is in ``rest``.

        A step that is not a partition's last says so.
        """
        ahead = {record.partition for record in rest}
        last = {record.partition: record.offset for record in part}
        steps = [advance for partition, advance in self._left.items() if partition not in ahead]
        self._left = {partition: advance for partition, advance in self._left.items() if partition in ahead}
        for partition in last.keys() & ahead:
            step = replace(self._left[partition], next_offset=last[partition] + 1, ends_batch=False)
            self._left[partition] = replace(self._left[partition], expected=step.next_offset)
            steps.append(step)
        return steps
