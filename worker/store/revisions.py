"""Which content of a batch is new, a new revision, newly judged or a duplicate. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gasp_core.grounding import AnswerGrounding
from schemas.decoding import Decoded
from worker.rules.records import Record
from worker.rules.settlement import Settlement
from worker.rules.verdict import Verdict

ContentKey = tuple[str, str, bytes]
"""App, interaction id and content hash, which together name one revision; the first two name the interaction."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A settlement with the key of its content, which is None for a dead letter."""

    settlement: Settlement
    key: ContentKey | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything a verdict is stored from: what was found, and what the threshold says to it.

    If it has a selection, the review task is told of on the ``channels``.
    """

    grounding: AnswerGrounding
    verdict: Verdict
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision in the database. ``has_verdict`` is about the scorer identity that was asked for."""

    pk: int
    revision: int
    is_current: bool
    has_verdict: bool


@dataclass(frozen=True, slots=True)
class NewRevision:
    """Everything a revision is inserted from: its number, whether it will be the current one, and what was logged."""

    revision: int
    is_current: bool
    record: Record
    decoded: Decoded


@dataclass(frozen=True, slots=True)
class RevisionPlan:
    """What a batch does.

    ``judged`` are the new verdicts, in the order of the batch; ``added`` are those of its keys that are new revisions;
    ``superseded`` are the primary keys of stored revisions that stop being current; ``duplicates`` are the positions in
    the batch of settlements whose content had its verdict already.
    """

    judged: dict[ContentKey, Judged]
    added: dict[ContentKey, NewRevision]
    superseded: tuple[int, ...]
    duplicates: frozenset[int]


def keyed(settlement: Settlement) -> Keyed:
    """Compute the key of the settlement's content."""
    if settlement.decoded is None:
        return Keyed(settlement, None)
    interaction = settlement.decoded.interaction
    return Keyed(settlement, (interaction.app, interaction.interaction_id, bytes.fromhex(interaction.content_hash)))


def plan_revisions(batch: Sequence[Keyed], stored: Mapping[ContentKey, StoredRevision]) -> RevisionPlan:
    """Go through the batch in order.

    Content that was never stored is the interaction's next revision. The last such one of the batch becomes current;
    content that comes back after a newer revision stays an old revision.
    """
    judged: dict[ContentKey, Judged] = {}
    new: dict[ContentKey, tuple[Record, Decoded]] = {}
    duplicates = set()
    for position, item in enumerate(batch):
        settlement = item.settlement
        if item.key is None or settlement.decoded is None or settlement.grounding is None or settlement.verdict is None:
            continue
        if item.key in judged or (item.key in stored and stored[item.key].has_verdict):
            duplicates.add(position)
            continue
        judged[item.key] = Judged(settlement.grounding, settlement.verdict, settlement.channels)
        if item.key not in stored:
            new[item.key] = (settlement.record, settlement.decoded)
    added = _numbered(new, stored)
    changed = {key[:2] for key in added}
    superseded = tuple(old.pk for key, old in stored.items() if old.is_current and key[:2] in changed)
    return RevisionPlan(judged, added, superseded, frozenset(duplicates))


def _numbered(
    new: Mapping[ContentKey, tuple[Record, Decoded]], stored: Mapping[ContentKey, StoredRevision]
) -> dict[ContentKey, NewRevision]:
    newest: dict[tuple[str, str], int] = {}
    for key, old in stored.items():
        newest[key[:2]] = max(old.revision, newest.get(key[:2], 0))
    last = {key[:2]: key for key in new}
    added = {}
    for key, (record, decoded) in new.items():
        newest[key[:2]] = newest.get(key[:2], 0) + 1
        added[key] = NewRevision(newest[key[:2]], last[key[:2]] == key, record, decoded)
    return added
