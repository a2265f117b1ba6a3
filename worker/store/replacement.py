"""What becomes of the open work of a scorer when another one takes its place: it is closed, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from worker.store.attribution_jobs import close_replaced, close_retired
from worker.store.repository import Repository, writes
from worker.store.review_tasks import withdraw_replaced, withdraw_retired
from worker.store.scorers import scorers_at_work


class Replacement(Repository):
    """The open work of scorers that no worker runs any more."""

    @writes
    def close(self, connection: Connection, limit: int) -> int:
        """Close attribution jobs and withdraw tasks of scorers that gave no verdict in the last seven days.

        Not while no scorer is at work: a fleet that stands still goes on with what it has. Returns how many were
        closed, at most ``limit`` of each kind.
        """
        at_work = scorers_at_work(connection)
        if not at_work:
            return 0
        return close_retired(connection, at_work, limit) + withdraw_retired(connection, at_work, limit)


def replace_verdicts(connection: Connection, scorer_id: int, interaction_pks: Sequence[int]) -> None:
    """Close what other scorers left open of the answers that this scorer has judged just now."""
    if interaction_pks:
        close_replaced(connection, scorer_id, interaction_pks)
        withdraw_replaced(connection, scorer_id, interaction_pks)
