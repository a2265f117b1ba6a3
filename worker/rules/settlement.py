"""What became of each record: the values that one Postgres transaction writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gasp_core.grounding import AnswerGrounding
from schemas.decoding import Decoded
from worker.rules.records import Record
from worker.rules.verdict import Verdict


class Outcome(StrEnum):
    """The ledger's words. A record of the label topic is labelled where one of the interactions' is scored."""

    SCORED = "scored"
    LABELLED = "labelled"
    SKIPPED = "skipped"
    DEAD_LETTERED = "dead_lettered"


@dataclass(frozen=True, slots=True)
class Settlement:
    """One record with its outcome.

    ``reason`` is None exactly if the outcome is scored or labelled; ``detail`` explains a dead letter and never holds
    message text. ``decoded`` is None for a dead letter and a deletion. ``grounding`` and ``verdict`` are None for these
    and for a duplicate; a skipped answer (no passages, a refusal) has both, so that its sentences are listed with their
    reason. If the verdict has a selection, the review task is sent on the ``channels``: kafka, webhook.
    """

    record: Record
    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    decoded: Decoded | None = None
    grounding: AnswerGrounding | None = None
    verdict: Verdict | None = None
    channels: tuple[str, ...] = ()


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
    """What a transaction did: how many records got each (outcome, reason), and the partitions that were fenced."""

    counts: dict[tuple[Outcome, str | None], int] = field(default_factory=dict)
    fenced: tuple[tuple[str, int], ...] = ()


def merge(results: Sequence[Settled]) -> Settled:
    """Add up what several transactions did."""
    counts: Counter[tuple[Outcome, str | None]] = Counter()
    for result in results:
        counts.update(result.counts)
    return Settled(dict(counts), tuple(sorted({place for result in results for place in result.fenced})))
