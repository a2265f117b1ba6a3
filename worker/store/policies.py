"""Review policies: what each app wants from its reviews, and a default for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from worker.rules.policy import DEFAULT_POLICY, Objective, ReviewPolicy
from worker.store.repository import Repository, reads, writes
from worker.store.tables import review_policies

POLICY_COLUMNS = (
    "daily_sentences",
    "sampled_share",
    "objective",
    "target",
    "attribution_share",
    "reviewers",
    "flag_share",
)

_policies = review_policies.c


class ReviewPolicies(Repository):
    """What each app wants from its reviews."""

    @reads
    def all(self, connection: Connection) -> tuple[ReviewPolicy, ...]:
        """The policies that were set, by app; that of every other app first."""
        found = select(_policies.app, *(_policies[name] for name in POLICY_COLUMNS)).order_by(
            _policies.app.nulls_first()
        )
        return tuple(policy_of(row.app, row._asdict()) for row in connection.execute(found))

    @reads
    def in_force(self, connection: Connection, app: str | None) -> ReviewPolicy:
        """The app's own policy, else that of every other app, else the built-in one."""
        theirs = or_(_policies.app == app, _policies.app.is_(None))
        own_first = select(review_policies).where(theirs).order_by(_policies.app.nulls_last()).limit(1)
        found = connection.execute(own_first).one_or_none()
        return DEFAULT_POLICY if found is None else policy_of(found.app, found._asdict())

    @writes
    def set(self, connection: Connection, policy: ReviewPolicy) -> None:
        """Set or change an app's policy. It holds from the next batch on."""
        values: dict[str, Any] = {name: getattr(policy, name) for name in POLICY_COLUMNS}
        entered = insert(review_policies).values(app=policy.app, **values | {"objective": policy.objective.value})
        changed = {name: entered.excluded[name] for name in POLICY_COLUMNS} | {"updated_at": func.now()}
        connection.execute(entered.on_conflict_do_update(constraint="uq_review_policies_app", set_=changed))

    @writes
    def clear(self, connection: Connection, app: str | None) -> bool:
        """Let the app follow the policy of every other app again, and those (None) the built-in one.

        False if it had none of its own.
        """
        return connection.execute(delete(review_policies).where(_policies.app.is_not_distinct_from(app))).rowcount == 1


def policy_of(app: str | None, row: Mapping[str, Any]) -> ReviewPolicy:
    """The policy in a row that has the POLICY_COLUMNS, among others."""
    values = {name: row[name] for name in POLICY_COLUMNS}
    return ReviewPolicy(app=app, **values | {"objective": Objective(values["objective"])})
