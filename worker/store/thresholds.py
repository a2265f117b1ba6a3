"""Threshold versions: rows are only ever added, and at most one per app and scorer is in force.

Whoever adds a version or changes which is in force takes one lock, so that two at once follow each other. Each change
is entered in ``threshold_activations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, func, insert, literal, null, select, update
from sqlalchemy.dialects import postgresql

from worker.rules.calibration.curve import Curve
from worker.rules.verdict import Threshold, version_name
from worker.store.tables import threshold_activations, thresholds

MANUAL = "manual"

_SEEDED_BY = "worker"
_LOCK = "gasp thresholds"

_versions = thresholds.c
_activations = threshold_activations.c


@dataclass(frozen=True, slots=True)
class Proposal:
    """A version that is not stored yet, for one app (None: every app without its own); both bounds are scores.

    ``learned_from`` is manual or calibrated. ``curve`` gives P(unsupported | score), None if nobody fitted one.
    """

    app: str | None
    scorer_id: int
    flag_below: float
    attribute_below: float
    learned_from: str
    note: str
    curve: Curve | None = None


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

    @property
    def name(self) -> str:
        """The version as people see it, such as ``*/1`` (for all apps) or ``support-bot/3``."""
        return version_name(self.app, self.version)


@dataclass(frozen=True, slots=True)
class Activation:
    """A version came into force, or went without a successor of its app (``reason`` is withdrawn).

    The other reasons are seeded, calibrated, manual and rollback. ``activated_by`` names a person or a part of ours.
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


def ensure_default_threshold(
    connection: Connection, scorer_id: int, *, flag_below: float, attribute_below: float, note: str
) -> None:
    """Seed version 1 for every app, active, unless the scorer has a default of any version already."""
    has_default = exists().where(_versions.app.is_(None), _versions.scorer_id == scorer_id)
    values = {
        "app": null(),
        "scorer_id": literal(scorer_id),
        "version": literal(1),
        "flag_below": literal(flag_below),
        "attribute_below": literal(attribute_below),
        "learned_from": literal("seeded"),
        "note": literal(note),
        "activated_at": func.now(),
        "is_active": literal(value=True),
    }
    seed = postgresql.insert(thresholds).from_select(list(values), select(*values.values()).where(~has_default))
    # Two workers that start at once both find none; the unique keys let one of them in.
    seeded = connection.execute(seed.on_conflict_do_nothing().returning(_versions.id)).scalar_one_or_none()
    if seeded is not None:
        _enter(connection, seeded, _SEEDED_BY, "seeded")


def active_thresholds(connection: Connection, scorer_id: int) -> dict[str | None, Threshold]:
    """The threshold in force per app; the key None is the default for every other app."""
    names = ("id", "app", "version", "flag_below", "attribute_below", "learned_from", "activated_at", "curve")
    found = select(*(_versions[name] for name in names)).where(_versions.scorer_id == scorer_id, _versions.is_active)
    return {row.app: Threshold(**row._asdict() | {"curve": _curve(row.curve)}) for row in connection.execute(found)}


def versions(connection: Connection) -> tuple[Version, ...]:
    """Every version of every app and scorer, the defaults first and old before new."""
    found = select(thresholds).order_by(_versions.scorer_id, _versions.app.nulls_first(), _versions.version)
    return tuple(_version(row) for row in connection.execute(found))


def find_version(connection: Connection, threshold_id: int) -> Version | None:
    """The version with this id."""
    row = connection.execute(select(thresholds).where(_versions.id == threshold_id)).one_or_none()
    return None if row is None else _version(row)


def version_in_force(connection: Connection, app: str | None, scorer_id: int) -> Version | None:
    """The app's own version in force, else the default's; None where the scorer has not even that."""
    found = (
        select(thresholds)
        .where((_versions.app == app) | _versions.app.is_(None), _versions.scorer_id == scorer_id, _versions.is_active)
        .order_by(_versions.app.nulls_last())
        .limit(1)
    )
    row = connection.execute(found).one_or_none()
    return None if row is None else _version(row)


def activations(connection: Connection) -> tuple[Activation, ...]:
    """What came into force when, and by whom, old before new."""
    return tuple(_activation(row) for row in connection.execute(_entered()))


def last_activation(connection: Connection, app: str | None, scorer_id: int) -> Activation | None:
    """The last change of which version of the app's own (None: of the default) is in force; None if there was none."""
    newest = _entered(*_whose(app, scorer_id)).order_by(None).order_by(_activations.id.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else _activation(row)


def lock(connection: Connection) -> None:
    """Wait until no other transaction changes versions, and keep others from it to the end of this one."""
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(_LOCK))))


def add_version(connection: Connection, proposal: Proposal) -> Version:
    """Store the proposal under the app's next version number, not in force yet."""
    lock(connection)
    newest = select(func.coalesce(func.max(_versions.version), 0)).where(*_whose(proposal.app, proposal.scorer_id))
    added = insert(thresholds).values(
        app=proposal.app,
        scorer_id=proposal.scorer_id,
        version=newest.scalar_subquery() + 1,
        flag_below=proposal.flag_below,
        attribute_below=proposal.attribute_below,
        learned_from=proposal.learned_from,
        note=proposal.note,
        curve=null() if proposal.curve is None else proposal.curve.to_json(),
    )
    return _version(connection.execute(added.returning(thresholds)).one())


def set_by_hand(connection: Connection, proposal: Proposal, by: str) -> Version:
    """Store the proposal and put it in force."""
    added = add_version(connection, proposal)
    return activate(connection, added.id, by, MANUAL) or added


def activate(connection: Connection, threshold_id: int, by: str, reason: str) -> Version | None:
    """Put a version in force in place of its app's present one; None if there is no such version.

    Nothing is entered if it is in force already.
    """
    lock(connection)
    chosen = find_version(connection, threshold_id)
    if chosen is None or chosen.is_active:
        return chosen
    _retire(connection, chosen.app, chosen.scorer_id)
    put = update(thresholds).where(_versions.id == threshold_id).values(is_active=True, activated_at=func.now())
    activated = _version(connection.execute(put.returning(thresholds)).one())
    _enter(connection, threshold_id, by, reason)
    return activated


def roll_back(connection: Connection, app: str | None, scorer_id: int, by: str) -> Rollback | None:
    """Undo the last activation of the app (None: of the default) that was not undone yet.

    An app whose first own version is undone follows the default again. None, with nothing written, if the app has no
    version of its own in force, or if the default in force is the first.
    """
    lock(connection)
    present = version_in_force(connection, app, scorer_id)
    if present is None or present.app != app:
        return None
    own = [_activation(row) for row in connection.execute(_entered(*_whose(app, scorer_id)))]
    before = _in_force_before(own, present)
    if before is not None:
        return Rollback(present, activate(connection, before.id, by, "rollback"))
    if app is None:
        return None
    _retire(connection, app, scorer_id)
    _enter(connection, present.id, by, "withdrawn")
    return Rollback(present, None)


def _in_force_before(own: Sequence[Activation], present: Version) -> Version | None:
    """The version that the present one replaced; each rollback has taken one activation back."""
    stood: list[Version] = []
    for found in own:
        if found.reason == "withdrawn":
            stood.clear()
            continue
        if found.reason == "rollback":
            while stood and stood[-1].id != found.version.id:
                stood.pop()
        if not stood or stood[-1].id != found.version.id:
            stood.append(found.version)
    # Somebody may have put the present one in force by hand.
    earlier = stood[:-1] if stood and stood[-1].id == present.id else stood
    return earlier[-1] if earlier else None


def _entered(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Activations with the columns of their versions, old before new."""
    entered = [_activations[name].label(f"entered_{name}") for name in ("activated_at", "activated_by", "reason")]
    joined = select(thresholds, *entered).join(threshold_activations, _activations.threshold_id == _versions.id)
    return joined.where(*conditions).order_by(_activations.id)


def _activation(row: Row[Any]) -> Activation:
    return Activation(row.entered_activated_at, _version(row), row.entered_activated_by, row.entered_reason)


def _whose(app: str | None, scorer_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _versions.app.is_not_distinct_from(app), _versions.scorer_id == scorer_id


def _retire(connection: Connection, app: str | None, scorer_id: int) -> None:
    connection.execute(update(thresholds).where(*_whose(app, scorer_id), _versions.is_active).values(is_active=False))


def _enter(connection: Connection, threshold_id: int, by: str, reason: str) -> None:
    connection.execute(insert(threshold_activations).values(threshold_id=threshold_id, activated_by=by, reason=reason))


def _version(row: Row[Any]) -> Version:
    values = {name: getattr(row, name) for name in Version.__dataclass_fields__}
    return Version(**values | {"curve": _curve(row.curve)})


def _curve(stored: dict[str, list[float]] | None) -> Curve | None:
    return None if stored is None else Curve.from_json(stored)
