"""Scorer identities, one row each: which there are, which are at work, and how a person names one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, insert, select

from gasp_core.identity import ScorerIdentity
from worker.errors import WorkerError
from worker.store.repository import Repository, reads, writes
from worker.store.tables import INTERACTION_TIME, interactions, scorers, sentences, verdicts

AT_WORK_DAYS = 7

IDENTITY = ("model", "revision", "dtype", "template", "method")


@dataclass(frozen=True, slots=True)
class KnownScorer:
    """A scorer identity that a worker has run with."""

    id: int
    label: str
    registered_at: datetime


class Scorers(Repository):
    """The scorer identities of this database."""

    @writes
    def register(self, connection: Connection, identity: ScorerIdentity) -> int:
        """The id of the identity's row, which is made if it is missing."""
        values = {name: getattr(identity, name) for name in IDENTITY}
        same = (scorers.c[name] == value for name, value in values.items())
        known: int | None = connection.scalar(select(scorers.c.id).where(*same))
        if known is not None:
            return known
        # Without ON CONFLICT: a worker that is a moment too late runs this again, and then finds the row.
        added = insert(scorers).values(**values, label=identity.label).returning(scorers.c.id)
        return int(connection.execute(added).scalar_one())

    @reads
    def known(self, connection: Connection) -> tuple[KnownScorer, ...]:
        """Every scorer identity that a worker has run with, in the order of registration."""
        found = select(scorers.c.id, scorers.c.label, scorers.c.created_at).order_by(scorers.c.id)
        return tuple(KnownScorer(*row) for row in connection.execute(found))

    @reads
    def newest_method(self, connection: Connection, model: str) -> str | None:
        """The method of the scorer that gave the newest verdict among those of a model; None if there is no verdict."""
        theirs = tuple(connection.scalars(select(scorers.c.id).where(scorers.c.model == model)))
        if not theirs:
            return None
        # From the newest verdict back, in the order of the primary key: as a rule it is one of theirs.
        newest = (
            select(verdicts.c.scorer_id)
            .where(verdicts.c.scorer_id.in_(theirs))
            .order_by(verdicts.c.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        method: str | None = connection.scalar(select(scorers.c.method).where(scorers.c.id == newest))
        return method

    @reads
    def at_work(self, connection: Connection) -> tuple[int, ...]:
        """The ids of the scorers that gave a verdict in the last seven days."""
        return scorers_at_work(connection)

    @reads
    def newest_of(self, connection: Connection, app: str) -> int | None:
        """The scorer that gave the app's newest answer its last verdict; None if the app has none."""
        newest = select(interactions.c.id).where(interactions.c.app == app).order_by(INTERACTION_TIME.desc()).limit(1)
        found = (
            select(verdicts.c.scorer_id)
            .where(verdicts.c.interaction_pk == newest.scalar_subquery())
            .order_by(verdicts.c.scored_at.desc(), verdicts.c.id.desc())
            .limit(1)
        )
        return connection.execute(found).scalar_one_or_none()


def scorers_at_work(connection: Connection) -> tuple[int, ...]:
    """The ids of the scorers that gave a verdict in the last seven days."""
    since = func.now() - timedelta(days=AT_WORK_DAYS)
    # A time is indexed in the sentences' weeks only; the ids of verdicts rise with it.
    first = select(func.min(sentences.c.verdict_id)).where(sentences.c.scored_at >= since).scalar_subquery()
    found = select(verdicts.c.scorer_id).where(verdicts.c.id >= first).distinct().order_by(verdicts.c.scorer_id)
    return tuple(connection.scalars(found))


def choose_scorer(known: Sequence[KnownScorer], wanted: str) -> KnownScorer:
    """The scorer with this label or id. Raises WorkerError, with those to choose from, unless it is exactly one."""
    found = [one for one in known if wanted in {one.label, str(one.id)}]
    if len(found) == 1:
        return found[0]
    if not known:
        raise WorkerError("no scorer is known yet: run a worker with it first")
    problem = "means several scorers, name one by its id:" if found else "is not a known scorer; these are:"
    choices = (f"{one.id:>4}  {one.label}  registered {one.registered_at:%Y-%m-%d %H:%M} UTC" for one in found or known)
    raise WorkerError("\n".join([f"{wanted} {problem}", *choices]))
