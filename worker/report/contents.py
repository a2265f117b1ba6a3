"""What the page shows, gathered from the store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from gasp_core.terminal import visible
from worker.errors import WorkerError
from worker.report.quality import Quality, quality
from worker.rules.verdict import Threshold, threshold_for
from worker.store.report_contents import Found, Subject
from worker.store.scorers import choose_scorer
from worker.store.store import Store
from worker.terminal.apps import require_known_app


@dataclass(frozen=True, slots=True)
class Contents:
    """``scorer`` is its label, ``threshold`` what is in force now; ``quality`` is None as long as there is no label."""

    subject: Subject
    scorer: str
    threshold: Threshold
    found: Found
    quality: Quality | None


def gather(store: Store, app: str, since: datetime, scorer: str | None) -> Contents:
    """Read everything about the app from ``since`` to now, under the scorer that is named or gave the last verdict.

    Raises WorkerError if there is no such app or scorer, and StoreError.
    """
    known = store.scorers.known()
    if scorer is None:
        scorer_id = store.scorers.newest_of(app)
        if scorer_id is None:
            require_known_app(store.interactions, app)
            raise WorkerError(f"the app {visible(app)} has no verdict yet")
        label = next(one.label for one in known if one.id == scorer_id)
    else:
        chosen = choose_scorer(known, scorer)
        scorer_id, label = chosen.id, chosen.label
    subject = Subject(app, scorer_id, since, datetime.now(UTC))
    threshold = threshold_for(app, store.thresholds.in_force(scorer_id))
    found = store.reports.read(subject, threshold.correction)
    return Contents(
        subject,
        label,
        threshold,
        found,
        quality(found.labels, found.scores, threshold.flag_below, threshold.curve, found.unanswered),
    )
