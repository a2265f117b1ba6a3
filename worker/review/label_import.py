"""Labels of a file into the database: what is right goes in, what is wrong is told, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from schemas.decoding import Rejected
from schemas.label_reading import Reading, read_label_row
from schemas.reject_reason import RejectReason
from schemas.review_label import ReviewLabel
from worker.review.label_file import FileRow
from worker.rules.label_settlement import NO_LABEL
from worker.store.errors import StoreRejected
from worker.store.labels import LabelOutcome, Labels

BATCH_LABELS = 500
REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Reject:
    """A label that did not go in, and the row that it is of. ``detail`` names the rule, never what stood there."""

    number: int
    reason: RejectReason
    detail: str


@dataclass(slots=True)
class Import:
    """A batch at a time, each in a transaction of its own. ``store_labels`` is the store's, or a rehearsal of it."""

    store_labels: Callable[[Sequence[ReviewLabel]], list[LabelOutcome]]
    on_reject: Callable[[Reject], None]
    counts: Counter[str] = field(default_factory=Counter)
    _waiting: list[tuple[int, ReviewLabel]] = field(default_factory=list)

    def add(self, number: int, reading: Reading) -> None:
        """Take a row's labels; they go in with the others of the batch, and always together."""
        for fault in reading.faults:
            self._reject(number, fault.reason, fault.detail)
        if not reading.labels and not reading.faults:
            self.counts[NO_LABEL] += 1
        self._waiting.extend((number, label) for label in reading.labels)
        if len(self._waiting) >= BATCH_LABELS:
            self.finish()

    def finish(self) -> None:
        """Store what waits. Raises StoreError."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            outcomes = self.store_labels([label for _, label in waiting])
        except StoreRejected as error:
            if len(waiting) == 1:
                self._reject(waiting[0][0], RejectReason.STORE_REJECTED, error.constraint or "")
                return
            # One label of the batch is more than the database can hold; alone, each shows which it was.
            for one in waiting:
                self._waiting = [one]
                self.finish()
            return
        self._count(waiting, outcomes)

    def _count(self, waiting: Sequence[tuple[int, ReviewLabel]], outcomes: Sequence[LabelOutcome]) -> None:
        labels_of = Counter(number for number, _ in waiting)
        for (number, label), outcome in zip(waiting, outcomes, strict=True):
            if outcome is LabelOutcome.UNKNOWN_SENTENCE:
                self._reject(number, RejectReason.UNKNOWN_SENTENCE, f"no sentence {label.sentence_index} with a score")
            elif outcome is not LabelOutcome.NOTHING_TO_WITHDRAW or labels_of[number] == 1:
                # An annotation withdraws what was said before it; nobody needs to know that there was nothing.
                self.counts[outcome.value] += 1

    def _reject(self, number: int, reason: RejectReason, detail: str) -> None:
        self.counts[REJECTED] += 1
        self.on_reject(Reject(number, reason, detail))


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
    work = Import(labels.rehearse if dry_run else lambda batch: labels.add(batch, "file"), on_reject=on_reject)
    for row in rows:
        work.add(row.number, _reading(row, tool))
        on_bytes(row.size_bytes)
    work.finish()
    return dict(work.counts)


def _reading(row: FileRow, tool: str | None) -> Reading:
    if isinstance(row.content, Rejected):
        return Reading((), (row.content,))
    return read_label_row(row.content, received_at=datetime.now(UTC), tool=tool)
