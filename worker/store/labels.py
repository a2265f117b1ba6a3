"""What people said, stored label by label; and the tasks, brought up to date in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sqlalchemy import Connection

from schemas.review_label import LabelAction, ReviewLabel
from worker.store.label_history import histories_of, restoring
from worker.store.label_rows import Draft, Judgement, LabelSource, drafts_of, insert_drafts, places_of
from worker.store.label_tasks import refresh_tasks_of, refresh_tasks_with_early_labels
from worker.store.repository import Repository, reads, writes


class LabelOutcome(StrEnum):
    """What became of a label. The last three are not stored; of a repeat the first is."""

    STORED = "stored"
    CORRECTED = "corrected"
    WITHDRAWN = "withdrawn"
    RESTORED = "restored"
    EARLY = "early"
    SUPERSEDED = "superseded"
    REPEATED = "repeated"
    NOTHING_TO_WITHDRAW = "nothing_to_withdraw"
    UNKNOWN_SENTENCE = "unknown_sentence"
    WITHHELD = "withheld"


_NOT_STORED = (LabelOutcome.UNKNOWN_SENTENCE, LabelOutcome.WITHHELD)


class Labels(Repository):
    """The labels of reviewers, and the tasks that they belong to."""

    @reads
    def unknown_sentences(self, connection: Connection, labels: Sequence[ReviewLabel]) -> set[int]:
        """The positions of the labels that are about no sentence with a score, of an answer that is known."""
        places = places_of(connection, labels)
        return {position for position, place in enumerate(places) if place == "unknown_sentence"}

    @writes
    def add(
        self,
        connection: Connection,
        labels: Sequence[ReviewLabel],
        source: LabelSource,
        bundle_of: Sequence[int] | None = None,
    ) -> list[LabelOutcome]:
        """Store labels in their order and refresh the tasks that they touch; one outcome for each.

        ``bundle_of`` numbers the bundle that each is of: if one of a bundle is refused, the others are withheld.
        """
        return add_labels(connection, labels, source, bundle_of)

    @writes
    def rehearse(
        self, connection: Connection, labels: Sequence[ReviewLabel], bundle_of: Sequence[int] | None = None
    ) -> list[LabelOutcome]:
        """What ``add`` would make of them; nothing is kept."""
        trial = connection.begin_nested()
        outcomes = add_labels(connection, labels, "file", bundle_of)
        trial.rollback()
        return outcomes

    @writes
    def refresh_early(self, connection: Connection) -> int:
        """Refresh the open tasks of the last day that had labels before they were made; return how many there are."""
        return refresh_tasks_with_early_labels(connection)


def add_labels(
    connection: Connection,
    labels: Sequence[ReviewLabel],
    source: LabelSource,
    bundle_of: Sequence[int] | None = None,
    *,
    refuse_unknown: bool = True,
) -> list[LabelOutcome]:
    """Store the labels in their order and refresh the tasks that they touch; one outcome for each.

    ``bundle_of`` is as in ``Labels.add``; without it each is alone. With ``refuse_unknown`` false a label about an
    unknown sentence is stored like an early one.
    """
    places = places_of(connection, labels)
    outcomes = _refusals(labels, places if refuse_unknown else [], bundle_of or range(len(labels)))
    refused = {position for position, outcome in enumerate(outcomes) if outcome in _NOT_STORED}
    said = list(drafts_of(connection, labels, refused, source))
    histories, now = histories_of(connection, said)
    known = {judgement for judgement, history in histories.items() if history.keys}
    drafts = list(restoring(said, histories, now))
    inserted = insert_drafts(connection, drafts)
    touched: set[Judgement] = set()
    for draft in drafts:
        is_new = inserted[draft.key] > 0
        inserted[draft.key] -= is_new
        outcome = _outcome(draft, labels[draft.position], places[draft.position], is_known=draft.judgement in known)
        outcome = outcome if is_new else LabelOutcome.REPEATED
        if is_new or outcomes[draft.position] is LabelOutcome.NOTHING_TO_WITHDRAW:
            outcomes[draft.position] = outcome
        if is_new:
            touched.add(draft.judgement)
            known.add(draft.judgement)
    refresh_tasks_of(connection, touched)
    return outcomes


def _refusals(labels: Sequence[ReviewLabel], places: Sequence[str], bundle_of: Sequence[int]) -> list[LabelOutcome]:
    """The outcomes of those that are not stored; for the others, what holds unless a row is written."""
    unknown = {
        position
        for position, (label, place) in enumerate(zip(labels, places, strict=False))
        if label.action is LabelAction.LABEL and place == "unknown_sentence"
    }
    broken = {bundle_of[position] for position in unknown}
    return [
        LabelOutcome.UNKNOWN_SENTENCE
        if position in unknown
        else LabelOutcome.WITHHELD
        if bundle_of[position] in broken
        else LabelOutcome.NOTHING_TO_WITHDRAW
        for position in range(len(labels))
    ]


def _outcome(draft: Draft, label: ReviewLabel, place: str, *, is_known: bool) -> LabelOutcome:
    """Of a label that a row was written of."""
    if label.action is LabelAction.WITHDRAW:
        return LabelOutcome.WITHDRAWN
    if draft.is_restored:
        return LabelOutcome.RESTORED
    if is_known:
        return LabelOutcome.CORRECTED
    if place == "superseded":
        return LabelOutcome.SUPERSEDED
    return LabelOutcome.STORED if place == "known" else LabelOutcome.EARLY
