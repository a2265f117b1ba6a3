"""Which content of a batch is new, a new revision, newly judged or a duplicate. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from gasp_core.grounding import AnswerGrounding
from gasp_core.text.marks import as_shown
from schemas.decoding import Decoded
from worker.rules.records import Record
from worker.rules.settlement import Origin, Settlement
from worker.rules.verdict import Verdict
from worker.store.deliveries import Delivery, delivery_of, first_received_at

ContentKey = tuple[str, str, bytes]
"""App, interaction id and content hash, which together name one revision; the first two name the interaction."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A settlement with the key of its content and when and where it came; both are None for a dead letter."""

    settlement: Settlement
    key: ContentKey | None
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Everything a verdict is stored from: what was found, and what the threshold says to it.

    Sentences are spans of the answer as it is stored, with its marks.
    If it has a selection, the review task is told of on the ``channels``. The ``exports`` are the systems that it is
    sent to.
    """

    grounding: AnswerGrounding
    verdict: Verdict
    channels: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision in the database. ``has_verdict`` is about the scorer identity that was asked for.

    ``delivery`` is the newest of its content, ``logged_at`` the time of the first, None if nobody knows it.
    """

    pk: int
    revision: int
    is_current: bool
    has_verdict: bool
    delivery: Delivery
    logged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewRevision:
    """Everything a revision is inserted from: its number, whether it will be the current one, and what was logged.

    ``delivery`` is the newest of its content in the batch, ``origin`` the trace that it was made of, if it was.
    """

    revision: int
    is_current: bool
    record: Record
    decoded: Decoded
    delivery: Delivery
    origin: Origin | None = None

    @property
    def logged_at(self) -> datetime | None:
        """When the exchange took place, as far as the first record of its content says or the broker knows."""
        return self.decoded.interaction.occurred_at or first_received_at(self.record)


@dataclass(frozen=True, slots=True)
class RevisionPlan:
    """What a batch does.

    ``judged`` are the new verdicts, in the order of the batch; ``added`` are those of its keys that are new revisions;
    ``superseded`` are the primary keys of stored revisions that stop being current; ``current`` are those of stored
    revisions that are current from now on because of a newer delivery, which comes with them; ``duplicates`` are the
    positions in the batch of settlements whose content had its verdict already.
    """

    judged: dict[ContentKey, Judged]
    added: dict[ContentKey, NewRevision]
    superseded: tuple[int, ...]
    current: dict[int, Delivery]
    duplicates: frozenset[int]


def keyed(settlement: Settlement, incarnation: int = 0, now: datetime | None = None) -> Keyed:
    """Compute the key of the settlement's content, and when and where it came.

    ``incarnation`` is that of its topic; ``now`` is the time of what has none (None: this moment).
    """
    decoded = settlement.decoded
    if decoded is None:
        return Keyed(settlement, None)
    interaction = decoded.interaction
    key = (interaction.app, interaction.interaction_id, bytes.fromhex(interaction.content_hash))
    return Keyed(settlement, key, delivery_of(settlement, decoded, incarnation, now or datetime.now(UTC)))


def plan_revisions(batch: Sequence[Keyed], stored: Mapping[ContentKey, StoredRevision]) -> RevisionPlan:
    """Go through the batch in order.

    Content that was never stored is the interaction's next revision. The content of the newest delivery is current,
    whether it was stored before or not: what comes late is an old revision from the beginning.
    """
    judged: dict[ContentKey, Judged] = {}
    new: dict[ContentKey, tuple[Settlement, Decoded]] = {}
    duplicates = set()
    for position, item in enumerate(batch):
        settlement = item.settlement
        if item.key is None or settlement.decoded is None or settlement.grounding is None or settlement.verdict is None:
            continue
        if item.key in judged or (item.key in stored and stored[item.key].has_verdict):
            duplicates.add(position)
            continue
        grounding = as_shown(settlement.grounding, settlement.decoded.interaction.marks)
        judged[item.key] = Judged(grounding, settlement.verdict, settlement.channels, settlement.exports)
        if item.key not in stored:
            new[item.key] = (settlement, settlement.decoded)
    newest = _newest(batch, stored, new)
    added = _numbered(batch, new, stored, newest)
    current = {
        stored[key].pk: delivery
        for key, delivery in newest.values()
        if key in stored and (not stored[key].is_current or delivery != stored[key].delivery)
    }
    replaced = {key for key, _ in newest.values()}
    superseded = tuple(
        old.pk for key, old in stored.items() if old.is_current and key[:2] in newest and key not in replaced
    )
    return RevisionPlan(judged, added, superseded, current, frozenset(duplicates))


def _newest(
    batch: Sequence[Keyed], stored: Mapping[ContentKey, StoredRevision], new: Collection[ContentKey]
) -> dict[tuple[str, str], tuple[ContentKey, Delivery]]:
    """The current content of each interaction after the batch, with its newest delivery."""
    newest = {key[:2]: (key, old.delivery) for key, old in stored.items() if old.is_current}
    for item in batch:
        if item.key is None or item.delivery is None or (item.key not in stored and item.key not in new):
            continue
        found = newest.get(item.key[:2])
        if found is None or item.delivery.is_newer_than(found[1]):
            newest[item.key[:2]] = (item.key, item.delivery)
    return newest


def _numbered(
    batch: Sequence[Keyed],
    new: Mapping[ContentKey, tuple[Settlement, Decoded]],
    stored: Mapping[ContentKey, StoredRevision],
    newest: Mapping[tuple[str, str], tuple[ContentKey, Delivery]],
) -> dict[ContentKey, NewRevision]:
    last: dict[tuple[str, str], int] = {}
    for key, old in stored.items():
        last[key[:2]] = max(old.revision, last.get(key[:2], 0))
    came = {item.key: item.delivery for item in reversed(batch) if item.key in new and item.delivery is not None}
    added = {}
    for key, (settlement, decoded) in new.items():
        last[key[:2]] = last.get(key[:2], 0) + 1
        current, delivery = newest[key[:2]]
        is_current = current == key
        newest_delivery = delivery if is_current else came[key]
        record, origin = settlement.record, settlement.origin
        added[key] = NewRevision(last[key[:2]], is_current, record, decoded, newest_delivery, origin)
    return added
