"""Labels of a file into the database: what is right goes in, what is wrong is told, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from schemas.decoding import Rejected
from schemas.label_reading import Bundle, Reading, read_label_row
from schemas.reject_reason import RejectReason
from schemas.review_label import LabelAction, ReviewLabel
from worker.review.label_file import FileRow
from worker.rules.label_settlement import NO_LABEL
from worker.store.errors import StoreRejected
from worker.store.labels import LabelOutcome, Labels

BATCH_LABELS = 500
REJECTED = "rejected"
WITHHELD = LabelOutcome.WITHHELD.value
PASSED_OVER = "passed_over"


@dataclass(frozen=True, slots=True)
class Reject:
    """A label that did not go in, and the row that it is of. ``detail`` names the rule, never what stood there."""

    number: int
    reason: RejectReason
    detail: str


class Import:
    """A batch at a time, each in a transaction of its own. ``store_labels`` is the store's, or a rehearsal of it.

    It is told the labels, and the number of the bundle that each is of.
    """

    def __init__(
        self,
        store_labels: Callable[[Sequence[ReviewLabel], Sequence[int]], list[LabelOutcome]],
        on_reject: Callable[[Reject], None],
    ) -> None:
        self._store_labels = store_labels
        self._on_reject = on_reject
        self._waiting: list[tuple[int, Bundle]] = []
        self.counts: Counter[str] = Counter()

    def add(self, number: int, reading: Reading) -> None:
        """Take a row's labels; they go in with the others of the batch, and always together."""
        for fault in reading.faults:
            self._reject(number, fault.reason, fault.detail)
        if not reading.bundles and not reading.faults:
            self.counts[NO_LABEL] += 1
        self._count_more(WITHHELD, reading.withheld)
        self._count_more(PASSED_OVER, reading.passed_over)
        self._waiting.extend((number, bundle) for bundle in reading.bundles)
        if sum(len(bundle) for _, bundle in self._waiting) >= BATCH_LABELS:
            self.finish()

    def finish(self) -> None:
        """Store what waits. Raises StoreError."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._store(waiting)

    def _store(self, waiting: Sequence[tuple[int, Bundle]]) -> None:
        """Store bundles in one transaction, or, if one is more than the database can hold, each in its own."""
        labels = [label for _, bundle in waiting for label in bundle]
        bundle_of = [place for place, (_, bundle) in enumerate(waiting) for _ in bundle]
        try:
            outcomes = self._store_labels(labels, bundle_of)
        except StoreRejected as error:
            if len(waiting) > 1:
                for one in waiting:
                    self._store([one])
                return
            self._reject(waiting[0][0], RejectReason.STORE_REJECTED, error.constraint or "")
            self._count_more(WITHHELD, sum(label.action is LabelAction.LABEL for label in labels) - 1)
            return
        self._count([(waiting[place][0], label) for place, label in zip(bundle_of, labels, strict=True)], outcomes)

    def _count(self, labels: Sequence[tuple[int, ReviewLabel]], outcomes: Sequence[LabelOutcome]) -> None:
        labels_of = Counter(number for number, _ in labels)
        for (number, label), outcome in zip(labels, outcomes, strict=True):
            if outcome is LabelOutcome.UNKNOWN_SENTENCE:
                self._reject(number, RejectReason.UNKNOWN_SENTENCE, f"no sentence {label.sentence_index} with a score")
            elif outcome is LabelOutcome.WITHHELD:
                self._count_more(WITHHELD, label.action is LabelAction.LABEL)
            elif outcome is not LabelOutcome.NOTHING_TO_WITHDRAW or labels_of[number] == 1:
                # An annotation withdraws what was said before it; nobody needs to know that there was nothing.
                self.counts[outcome.value] += 1

    def _count_more(self, name: str, number: int) -> None:
        if number > 0:
            self.counts[name] += number

    def _reject(self, number: int, reason: RejectReason, detail: str) -> None:
        self.counts[REJECTED] += 1
        self._on_reject(Reject(number, reason, detail))


def import_labels(
    rows: Iterable[FileRow],
    labels: Labels,
    *,
    on_reject: Callable[[Reject], None],
    on_bytes: Callable[[int], None] = lambda _: None,
    tool: str | None = None,
    dry_run: bool = False,
) -> dict[str, int]:
    """Store the rows' labels; gives how many had each outcome. Repeated after a fault, it goes on where it was.

    ``dry_run`` stores nothing: each batch is tried and taken back, so that a repeat in a later batch is not seen.
    Raises StoreError, and InputFileError of ``rows``.
    """

    def store(batch: Sequence[ReviewLabel], bundle_of: Sequence[int]) -> list[LabelOutcome]:
        return labels.rehearse(batch, bundle_of) if dry_run else labels.add(batch, "file", bundle_of)

    work = Import(store, on_reject)
    for row in rows:
        work.add(row.number, _reading(row, tool))
        on_bytes(row.size_bytes)
    work.finish()
    return dict(work.counts)


def _reading(row: FileRow, tool: str | None) -> Reading:
    if isinstance(row.content, Rejected):
        return Reading((), (row.content,))
    return read_label_row(row.content, received_at=datetime.now(UTC), tool=tool)
