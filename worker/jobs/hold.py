"""How long the schedule leaves alone what a person chose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from worker.rules.verdict import MANUAL
from worker.store.threshold_versions import FOLLOWER, WITHDRAWN, Activation

# What a person set or rolled back stays that long before the schedule may replace it.
HOLD_DAYS = 7

_BY_HAND = {MANUAL, "rollback", WITHDRAWN}


def is_held(last: Activation | None) -> bool:
    """Whether the last change of an app's threshold was a person's, and is younger than HOLD_DAYS."""
    if last is None or last.reason not in _BY_HAND or last.activated_by == FOLLOWER:
        return False
    return datetime.now(UTC) - last.activated_at < timedelta(days=HOLD_DAYS)
