"""The status as a person reads it, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import orjson

from gasp_core.terminal import visible
from worker.commands.status import PartitionLag, Status


def status_json(status: Status) -> str:
    """One JSON object."""
    return orjson.dumps(status.as_json(), option=orjson.OPT_INDENT_2).decode()


def status_text(status: Status) -> str:
    """Three short tables, and further ones if there are traces, or anything was queued for re-scoring."""
    return "\n".join([*_partition_lines(status), "", *_count_lines(status)])


def _partition_lines(status: Status) -> Iterator[str]:
    if status.broker_problem is not None:
        yield f"{status.topic}: how many messages wait is not known now: {status.broker_problem}"
        yield "the partitions as the workers last saw them:"
    for topic, partitions in groupby(status.partitions, key=lambda one: one.topic):
        yield from _topic_lines(topic, tuple(partitions), is_sure=status.broker_problem is None)


def _topic_lines(topic: str, partitions: Sequence[PartitionLag], *, is_sure: bool) -> Iterator[str]:
    if is_sure:
        yield f"{visible(topic)}: {sum(one.lag or 0 for one in partitions)} messages wait"
    yield f"{'partition':>9} {'next':>10} {'end':>10} {'lag':>10}"
    for partition in partitions:
        beyond = (partition.next_offset or 0) > (partition.end_offset or 0) and partition.end_offset is not None
        note = "  beyond the end: topic created anew, or another cluster's database" if beyond else ""
        reached, end, lag = map(_known, (partition.next_offset, partition.end_offset, partition.lag))
        yield f"{partition.partition:>9} {reached:>10} {end:>10} {lag:>10}{note}"


def _known(number: int | None) -> str:
    return "-" if number is None else str(number)


def _count_lines(status: Status) -> Iterator[str]:
    yield "outcomes"
    yield from (f"  {outcome:<32} {count:>10}" for outcome, count in status.outcomes.items())
    if not status.outcomes:
        yield "  none yet"
    if any(status.traces.values()):
        yield "traces in several messages"
        yield from (f"  {state:<32} {count:>10}" for state, count in status.traces.items())
    yield "attribution jobs"
    yield from (f"  {state:<32} {count:>10}" for state, count in status.attribution.items())
    if any(status.rescoring.values()):
        yield "re-scoring jobs"
        yield from (f"  {state:<32} {count:>10}" for state, count in status.rescoring.items())
