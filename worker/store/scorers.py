"""Scorer identities, one row each, and how a person names one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from gasp_core.identity import ScorerIdentity
from worker.errors import WorkerError
from worker.store.tables import scorers

_IDENTITY = ("model", "revision", "dtype", "template", "method")


@dataclass(frozen=True, slots=True)
class KnownScorer:
    """A scorer identity that a worker has run with."""

    id: int
    label: str
    registered_at: datetime


def register_scorer(connection: Connection, identity: ScorerIdentity) -> int:
    """The id of the identity's row, which is made if it is missing."""
    values = {name: getattr(identity, name) for name in _IDENTITY}
    same = (scorers.c[name] == value for name, value in values.items())
    known: int | None = connection.scalar(select(scorers.c.id).where(*same))
    if known is not None:
        return known
    # Without ON CONFLICT: a worker that is a moment too late runs this again, and then finds the row.
    added = insert(scorers).values(**values, label=identity.label).returning(scorers.c.id)
    return int(connection.execute(added).scalar_one())


def known_scorers(connection: Connection) -> tuple[KnownScorer, ...]:
    """Every scorer identity, in the order of registration."""
    found = select(scorers.c.id, scorers.c.label, scorers.c.created_at).order_by(scorers.c.id)
    return tuple(KnownScorer(*row) for row in connection.execute(found))


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
