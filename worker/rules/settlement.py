"""What became of each record: the values that one Postgres transaction writes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import TypeVar

from gasp_core.grounding import AnswerGrounding
from schemas.dead_letter import MAX_DETAIL_CHARS
from schemas.decoding import Decoded
from schemas.traces.piece import TraceKey
from worker.rules.pieces import ClosedBy, TracePiece
from worker.rules.records import Record
from worker.rules.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Source:
    """Where messages lie: ``offsets`` of a partition, in order."""

    topic: str
    partition: int
    incarnation: int
    offsets: tuple[int, ...]


class Outcome(StrEnum):
    """The ledger's words. A record of the label topic is labelled where one of the interactions' is scored.

    What was collected is a part of a trace, of which the exchanges are made later.
    """

    SCORED = "scored"
    LABELLED = "labelled"
    COLLECTED = "collected"
    SKIPPED = "skipped"
    DEAD_LETTERED = "dead_lettered"


@dataclass(frozen=True, slots=True)
class Origin:
    """The trace that an exchange was made of: its primary key, and its system and id; ``sources`` are all its pieces.

    ``version`` grows with what is known of the trace, and ``closed_by`` says why no more was waited for.
    """

    trace_pk: int
    version: int
    trace: TraceKey
    closed_by: ClosedBy
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Settlement:
    """One result of a record with its outcome: most records have one, and some hold many exchanges.

    ``item`` counts the results of a record from 1. ``reason`` says why it is skipped or a dead letter, and is None for
    all else; ``detail`` explains a dead letter and never holds message text. ``decoded`` is None for a dead letter and
    a deletion. ``grounding`` and ``verdict`` are None for these and for a duplicate; a skipped answer (no passages, a
    refusal) has both, so that its sentences are listed with their reason. The grounding is that of the answer without
    its marks. If the verdict has a selection, the review task is sent on the ``channels``: kafka, webhook.
    What was collected has ``pieces`` of traces; an exchange that was made of such has its ``origin``.
    """

    record: Record
    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    decoded: Decoded | None = None
    grounding: AnswerGrounding | None = None
    verdict: Verdict | None = None
    channels: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    item: int = 1
    pieces: tuple[TracePiece, ...] = ()
    origin: Origin | None = None


S = TypeVar("S", bound=Settlement)

# As decoding begins what it says of an element of an array.
_NAMES_ROW = re.compile(r"row [0-9]+: ")


def by_record(settlements: Sequence[S]) -> list[tuple[S, ...]]:
    """The results of each record, which lie one behind the other."""
    places = groupby(settlements, lambda one: (one.record.topic, one.record.partition, one.record.offset))
    return [tuple(results) for _, results in places]


def letter_of(results: Sequence[Settlement]) -> Settlement | None:
    """What the dead letter of a record says, given all its results; None if none of them is one.

    Of several results it names the first that cannot be used, and says how many more there are.
    """
    dead = [one for one in results if one.outcome is Outcome.DEAD_LETTERED]
    if len(results) == 1 or not dead:
        return dead[0] if dead else None
    rest = f"; and {len(dead) - 1} more" if len(dead) > 1 else ""
    told = dead[0].detail or dead[0].reason or ""
    if not _NAMES_ROW.match(told):
        told = f"row {dead[0].item}: {told}"
    return replace(dead[0], detail=told[: MAX_DETAIL_CHARS - len(rest)] + rest)


@dataclass(frozen=True, slots=True)
class Advance:
    """A partition's step from ``expected`` to ``next_offset`` by the owner that claimed it in ``generation`` or before.

    It is refused if Postgres holds another owner, incarnation or offset. ``end_offset`` is the partition's own end as
    of the last fetch. A batch that is booked in parts takes several steps, of which the last ``ends_batch``.
    """

    topic: str
    partition: int
    expected: int
    next_offset: int
    owner: str
    generation: int
    incarnation: int = 0
    end_offset: int | None = None
    ends_batch: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """What a transaction did: how many results got each (outcome, reason), and the partitions that were fenced."""

    counts: dict[tuple[Outcome, str | None], int] = field(default_factory=dict)
    fenced: tuple[tuple[str, int], ...] = ()


def merge(results: Sequence[Settled]) -> Settled:
    """Add up what several transactions did."""
    counts: Counter[tuple[Outcome, str | None]] = Counter()
    for result in results:
        counts.update(result.counts)
    return Settled(dict(counts), tuple(sorted({place for result in results for place in result.fenced})))
