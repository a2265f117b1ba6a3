"""What is stored of exchanges that were judged: revisions, verdicts and tasks, within one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from worker.rules.settlement import Settlement
from worker.store.interactions import stored_revisions, write_revisions
from worker.store.replacement import replace_verdicts
from worker.store.review_tasks import AskedAnswer, write_tasks
from worker.store.revisions import ContentKey, Keyed, RevisionPlan, StoredRevision, plan_revisions
from worker.store.verdicts import write_verdicts


@dataclass(frozen=True, slots=True)
class Answers:
    """The primary keys of the content that was met, and the positions of what turned out to be duplicates."""

    pks: Mapping[ContentKey, int]
    duplicates: frozenset[int]

    def pk(self, item: Keyed) -> int | None:
        """Where the content of a settlement is stored; None if it has none, or is not stored."""
        return None if item.key is None else self.pks.get(item.key)


def write_answers(connection: Connection, scorer_id: int, kept: Sequence[Keyed]) -> Answers:
    """Store what is new, and move what is current. Settlements without content change nothing."""
    stored = stored_revisions(connection, scorer_id, [item.key for item in kept if item.key is not None])
    plan = plan_revisions(kept, stored)
    pks = {key: revision.pk for key, revision in stored.items()} | write_revisions(connection, plan)
    write_verdicts(connection, scorer_id, {pks[key]: judged for key, judged in plan.judged.items()})
    replace_verdicts(connection, scorer_id, [pks[key] for key in plan.judged if key in stored])
    if asked := _asked(plan, stored, pks):
        write_tasks(connection, scorer_id, asked)
    return Answers(pks, plan.duplicates)


def time_for(connection: Connection, settlements: Sequence[Settlement]) -> datetime | None:
    """The database's time, if a record has none of its own."""
    if all(settlement.record.broker_time is not None for settlement in settlements):
        return None
    return connection.scalars(select(func.now())).one()


def _asked(
    plan: RevisionPlan, stored: Mapping[ContentKey, StoredRevision], pks: Mapping[ContentKey, int]
) -> list[AskedAnswer]:
    """The new verdicts that have a selection."""
    return [
        AskedAnswer(pks[key], key, revision.logged_at, revision.revision, judged, selection)
        for key, judged in plan.judged.items()
        if (selection := judged.verdict.selection) is not None
        for revision in (plan.added.get(key) or stored[key],)
    ]
