"""Scorer identities, one row each."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from gasp_core.identity import ScorerIdentity
from worker.store.tables import scorers

_IDENTITY = ("model", "revision", "dtype", "template", "method")


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
