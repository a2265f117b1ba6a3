"""Which threshold of each app and scorer is in force, and the versions that there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, any_, exists, func, literal, null, or_, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY

from worker.rules.verdict import MANUAL, TRAFFIC, Threshold
from worker.store.repository import Repository, reads, writes
from worker.store.tables import threshold_activations, thresholds
from worker.store.threshold_versions import (
    FOLLOWER,
    WITHDRAWN,
    Activation,
    Proposal,
    Rollback,
    Version,
    add_version,
    enter_activation,
    learned_of,
    lock,
    put_in_force,
    put_in_place_of,
    retire,
    version_in_force,
    version_of,
    whose,
)

_SEEDED_BY = "worker"

_versions = thresholds.c
_activations = threshold_activations.c


class Thresholds(Repository):
    """Threshold versions, and which of them are in force. The app None stands for every app without its own."""

    @writes
    def ensure_default(
        self, connection: Connection, scorer_id: int, flag_below: float, attribute_below: float, note: str
    ) -> None:
        """Seed the first version for every app, active; nothing happens if the scorer has a default already."""
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
            enter_activation(connection, seeded, _SEEDED_BY, "seeded")

    @reads
    def in_force(
        self, connection: Connection, scorer_id: int, apps: Sequence[str] | None = None
    ) -> dict[str | None, Threshold]:
        """The threshold in force of each of the ``apps`` (None: of all) that has its own.

        The key None is the default for every other app.
        """
        found = select(*(_versions[name] for name in Threshold.__dataclass_fields__)).where(
            _versions.scorer_id == scorer_id, _versions.is_active
        )
        if apps is not None:
            theirs = any_(literal(list(apps), ARRAY(Text)))
            found = found.where(or_(_versions.app.is_(None), _versions.app == theirs))
        return {row.app: Threshold(**row._asdict() | learned_of(row)) for row in connection.execute(found)}

    @reads
    def versions(self, connection: Connection) -> tuple[Version, ...]:
        """Every version of every app and scorer, the defaults first and old before new."""
        found = select(thresholds).order_by(_versions.scorer_id, _versions.app.nulls_first(), _versions.version)
        return tuple(version_of(row) for row in connection.execute(found))

    @reads
    def activations(self, connection: Connection) -> tuple[Activation, ...]:
        """Which version came into force when, and by whom, old before new."""
        return tuple(_activation(row) for row in connection.execute(_entered()))

    @reads
    def last_activation(self, connection: Connection, app: str | None, scorer_id: int) -> Activation | None:
        """The last change of which version of the app's own (None: of the default) is in force, if any."""
        newest = _entered(*whose(app, scorer_id)).order_by(None).order_by(_activations.id.desc()).limit(1)
        row = connection.execute(newest).one_or_none()
        return None if row is None else _activation(row)

    @writes
    def add(self, connection: Connection, proposal: Proposal) -> Version:
        """Store the proposal under the app's next version number, not in force yet."""
        return add_version(connection, proposal)

    @writes
    def set_by_hand(self, connection: Connection, proposal: Proposal, by: str) -> Version:
        """Store the proposal and put it in force; ``by`` names the person."""
        added = add_version(connection, proposal)
        return put_in_force(connection, added.id, by, MANUAL) or added

    @writes
    def follow_traffic(self, connection: Connection, proposal: Proposal, in_force_id: int) -> Version | None:
        """Store bounds from the app's traffic and put them in force; None if others came into force meanwhile.

        ``in_force_id`` is the version that the app was judged by when its traffic was read.
        """
        return put_in_place_of(connection, in_force_id, proposal, FOLLOWER, TRAFFIC)

    @writes
    def activate(self, connection: Connection, threshold_id: int, by: str) -> Version | None:
        """Put a version in force by hand; None if there is no such version. Running workers judge by it at once."""
        return put_in_force(connection, threshold_id, by, MANUAL)

    @writes
    def roll_back(self, connection: Connection, app: str | None, scorer_id: int, by: str) -> Rollback | None:
        """Undo the last activation of the app (None: of the default) that was not undone yet.

        An app whose first own version is undone follows the default again. None, with nothing written, if the app has
        no version of its own in force, or if the default in force is the first.
        """
        lock(connection)
        present = version_in_force(connection, app, scorer_id)
        if present is None or present.app != app:
            return None
        own = [_activation(row) for row in connection.execute(_entered(*whose(app, scorer_id)))]
        before = _in_force_before(own, present)
        if before is not None:
            return Rollback(present, put_in_force(connection, before.id, by, "rollback"))
        if app is None:
            return None
        retire(connection, app, scorer_id)
        enter_activation(connection, present.id, by, WITHDRAWN)
        return Rollback(present, None)


def _in_force_before(own: Sequence[Activation], present: Version) -> Version | None:
    """The version that the present one replaced; each rollback has taken one activation back."""
    stood: list[Version] = []
    for found in own:
        if found.reason == WITHDRAWN:
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
    return Activation(row.entered_activated_at, version_of(row), row.entered_activated_by, row.entered_reason)
