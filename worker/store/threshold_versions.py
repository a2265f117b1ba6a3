"""Threshold versions as rows: what one is, how it is added and put in force within a transaction.

Rows are only ever added, and at most one per app and scorer is in force. Whoever adds a version or changes which is in
force takes one lock, so that two at once follow each other. Each change is entered in ``threshold_activations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, null, select, update

from worker.rules.calibration.curve import Curve
from worker.rules.refit.correction import Correction
from worker.rules.verdict import MANUAL, TRAFFIC, version_name
from worker.store.tables import threshold_activations, thresholds

# Enters what it does under this name: the job that lets bounds follow the traffic.
FOLLOWER = "follow_traffic"
WITHDRAWN = "withdrawn"

_LOCK = "gasp thresholds"

_versions = thresholds.c


@dataclass(frozen=True, slots=True)
class Proposal:
    """A version that is not stored yet, for one app (None: every app without its own); both bounds are scores.

    ``learned_from`` is traffic, manual or calibrated. ``curve`` gives P(unsupported | score), None if nobody fitted
    one. With a ``correction`` all of it is of corrected scores.
    """

    app: str | None
    scorer_id: int
    flag_below: float
    attribute_below: float
    learned_from: str
    note: str
    curve: Curve | None = None
    correction: Correction | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A stored version. ``activated_at`` is when it was last put in force, None if it never was."""

    id: int
    app: str | None
    scorer_id: int
    version: int
    flag_below: float
    attribute_below: float
    learned_from: str
    note: str | None
    created_at: datetime
    activated_at: datetime | None
    is_active: bool
    curve: Curve | None
    correction: Correction | None

    @property
    def name(self) -> str:
        """The version as people see it, such as ``*/1`` (for all apps) or ``support-bot/3``."""
        return version_name(self.app, self.version)


@dataclass(frozen=True, slots=True)
class Activation:
    """A version came into force, or went without a successor of its app (``reason`` is withdrawn).

    The other reasons are seeded, traffic, calibrated, manual and rollback. ``activated_by`` names a person or a part of
    ours.
    """

    activated_at: datetime
    version: Version
    activated_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """The version that was in force, and the one that is again; None if the app follows the default again."""

    left: Version
    back_to: Version | None


def lock(connection: Connection) -> None:
    """Wait until no other transaction changes versions, and keep others from it to the end of this one."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(_LOCK))))


def find_version(connection: Connection, threshold_id: int) -> Version | None:
    """The version with this id."""
    row = connection.execute(select(thresholds).where(_versions.id == threshold_id)).one_or_none()
    return None if row is None else version_of(row)


def version_in_force(connection: Connection, app: str | None, scorer_id: int) -> Version | None:
    """The app's own version in force, else the default's; None where the scorer has not even that."""
    found = (
        select(thresholds)
        .where((_versions.app == app) | _versions.app.is_(None), _versions.scorer_id == scorer_id, _versions.is_active)
        .order_by(_versions.app.nulls_last())
        .limit(1)
    )
    row = connection.execute(found).one_or_none()
    return None if row is None else version_of(row)


def add_version(connection: Connection, proposal: Proposal) -> Version:
    """Store the proposal under the app's next version number, not in force yet."""
    lock(connection)
    newest = select(func.coalesce(func.max(_versions.version), 0)).where(*whose(proposal.app, proposal.scorer_id))
    added = insert(thresholds).values(
        app=proposal.app,
        scorer_id=proposal.scorer_id,
        version=newest.scalar_subquery() + 1,
        flag_below=proposal.flag_below,
        attribute_below=proposal.attribute_below,
        learned_from=proposal.learned_from,
        note=proposal.note,
        curve=null() if proposal.curve is None else proposal.curve.to_json(),
        correction=None if proposal.correction is None else proposal.correction.to_json(),
    )
    return version_of(connection.execute(added.returning(thresholds)).one())


def put_in_force(connection: Connection, threshold_id: int, by: str, reason: str) -> Version | None:
    """Put a version in force in place of its app's present one; None if there is no such version.

    Nothing is entered if it is in force already. What a person set for all apps holds for those too whose bounds
    followed their traffic: their own versions are withdrawn.
    """
    lock(connection)
    chosen = find_version(connection, threshold_id)
    if chosen is None or chosen.is_active:
        return chosen
    retire(connection, chosen.app, chosen.scorer_id)
    if chosen.app is None and chosen.learned_from == MANUAL:
        _withdraw_traffic(connection, chosen.scorer_id)
    put = update(thresholds).where(_versions.id == threshold_id).values(is_active=True, activated_at=func.now())
    activated = version_of(connection.execute(put.returning(thresholds)).one())
    enter_activation(connection, threshold_id, by, reason)
    return activated


def put_in_place_of(
    connection: Connection, in_force_id: int, proposal: Proposal, by: str, reason: str
) -> Version | None:
    """Store the proposal and put it in force; None, with nothing written, unless ``in_force_id`` still holds there."""
    lock(connection)
    present = version_in_force(connection, proposal.app, proposal.scorer_id)
    if present is None or present.id != in_force_id:
        return None
    added = add_version(connection, proposal)
    return put_in_force(connection, added.id, by, reason)


def retire(connection: Connection, app: str | None, scorer_id: int) -> None:
    """Let none of the app's versions be in force."""
    connection.execute(update(thresholds).where(*whose(app, scorer_id), _versions.is_active).values(is_active=False))


def enter_activation(connection: Connection, threshold_id: int, by: str, reason: str) -> None:
    """Enter that a version came into force, or went (``reason`` is withdrawn), now and by whom."""
    connection.execute(insert(threshold_activations).values(threshold_id=threshold_id, activated_by=by, reason=reason))


def _withdraw_traffic(connection: Connection, scorer_id: int) -> None:
    followed = (_versions.scorer_id == scorer_id, _versions.app.is_not(None), _versions.learned_from == TRAFFIC)
    gone = update(thresholds).where(*followed, _versions.is_active).values(is_active=False).returning(_versions.id)
    for threshold_id in connection.scalars(gone).all():
        enter_activation(connection, threshold_id, FOLLOWER, WITHDRAWN)


def whose(app: str | None, scorer_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The versions of one app (None: the defaults) and scorer."""
    return _versions.app.is_not_distinct_from(app), _versions.scorer_id == scorer_id


def version_of(row: Row[Any]) -> Version:
    """The version in a row that has the columns of the table, among others."""
    values = {name: getattr(row, name) for name in Version.__dataclass_fields__}
    return Version(**values | learned_of(row))


def learned_of(row: Row[Any]) -> dict[str, Any]:
    """What the table has as JSON, the curve and the correction, by name."""
    return {
        "curve": None if row.curve is None else Curve.from_json(row.curve),
        "correction": None if row.correction is None else Correction.from_json(row.correction),
    }
