"""How fast each app may ask people: its policy, what a usual day holds, and what was issued today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Integer,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    extract,
    func,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.selectable import LateralFromClause, TableValuedAlias

from worker.rules.allowance import Allowance, UsualDay
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.selection import Reason
from worker.store.bulk import arrays, unrolled
from worker.store.policies import POLICY_COLUMNS, policy_of
from worker.store.repository import Repository, reads, writes
from worker.store.tables import (
    interactions,
    review_paces,
    review_policies,
    review_sentences,
    review_tasks,
    sentences,
    verdicts,
)

TRAFFIC_DAYS = 7
_DAY_S = 86_400

_logged, _judged, _paces, _tasks = interactions.c, verdicts.c, review_paces.c, review_tasks.c


@dataclass(frozen=True, slots=True)
class Traffic:
    """How many sentences of an app a scorer gave a score to on a day of the last week, on average."""

    scorer_id: int
    sentences_a_day: float


class Sampling(Repository):
    """How much each app may ask people about, and what there is to ask about."""

    @reads
    def allowances(self, connection: Connection, scorer_id: int, apps: Sequence[str]) -> dict[str, Allowance]:
        """What each of the apps may still ask about today (UTC) under this scorer. No apps, no statement."""
        if not apps:
            return {}
        found = connection.execute(
            _find_allowances(), {**arrays(("app",), [(app,) for app in apps]), "scorer": scorer_id}
        )
        return {row.app: _allowance(row) for row in found}

    @reads
    def traffic(self, connection: Connection, app: str) -> tuple[Traffic, ...]:
        """The app's traffic under each scorer that has judged answers of the last TRAFFIC_DAYS.

        An app that is younger has a day at least: its first hour says nothing of the other ones.
        """
        age_days = cast(extract("epoch", func.now() - func.min(_logged.stored_at)), Double) / _DAY_S
        a_day = func.sum(_judged.n_scored) / func.least(TRAFFIC_DAYS, func.greatest(1, age_days))
        found = (
            select(_judged.scorer_id, a_day.label("sentences_a_day"))
            .join(verdicts, _judged.interaction_pk == _logged.id)
            .where(*_is_recent(app), _judged.n_scored > 0)
            .group_by(_judged.scorer_id)
        )
        return tuple(Traffic(row.scorer_id, float(row.sentences_a_day)) for row in connection.execute(found))

    @reads
    def recent_scores(self, connection: Connection, app: str, scorer_id: int, limit: int) -> list[float]:
        """The scores of at most ``limit`` of the app's newest scored sentences of the last TRAFFIC_DAYS."""
        newest = (
            select(_judged.id, _judged.scored_at, _logged.stored_at)
            .join(verdicts, _judged.interaction_pk == _logged.id)
            .where(*_is_recent(app), _judged.scorer_id == scorer_id, _judged.n_scored > 0)
            .order_by(_logged.stored_at.desc())
            .limit(limit)
            .cte("newest")
        )
        # By the time as well, which finds the week in which a sentence lies.
        theirs = and_(sentences.c.verdict_id == newest.c.id, sentences.c.scored_at == newest.c.scored_at)
        found = select(sentences.c.score).join(newest, theirs).where(sentences.c.score.is_not(None))
        return [float(score) for score in connection.scalars(found.order_by(newest.c.stored_at.desc()).limit(limit))]

    @writes
    def set_usual_day(self, connection: Connection, app: str, scorer_id: int, usual: UsualDay) -> None:
        """Enter or change what a usual day of the app holds under a scorer."""
        values = {"expected_flagged": usual.flagged, "expected_sampled": usual.sampled, "spread": usual.spread}
        entered = insert(review_paces).values(app=app, scorer_id=scorer_id, **values)
        changed = {name: entered.excluded[name] for name in values} | {"computed_at": func.now()}
        connection.execute(entered.on_conflict_do_update(constraint="pk_review_paces", set_=changed))


def _is_recent(app: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _logged.app == app, _logged.stored_at >= func.now() - timedelta(days=TRAFFIC_DAYS)


@cache
def _find_allowances() -> Select[Any]:
    asked = unrolled(app=Text())
    policy, issued = _policy(asked), _issued(asked)
    usual = and_(_paces.app == asked.c.app, _paces.scorer_id == bindparam("scorer"))
    found = asked.outerjoin(policy, true()).outerjoin(review_paces, usual).join(issued, true())
    expected = (_paces.expected_flagged, _paces.expected_sampled, _paces.spread)
    return select(asked.c.app, *policy.c, *expected, *issued.c).select_from(found)


def _policy(asked: TableValuedAlias) -> LateralFromClause:
    """The app's own policy, else that of every other app."""
    own = review_policies.c
    named = [own.app.label("policy_app"), *(own[name] for name in POLICY_COLUMNS)]
    own_first = select(*named).where(or_(own.app == asked.c.app, own.app.is_(None)))
    return own_first.order_by(own.app.nulls_last()).limit(1).lateral("policy")


def _issued(asked: TableValuedAlias) -> LateralFromClause:
    """Today's sentences of the app by reason. The tasks come first, by their index: the day's budget bounds them."""
    named = {"flagged_issued": Reason.FLAGGED, "sampled_issued": Reason.SAMPLED}
    counts = [
        func.count().filter(review_sentences.c.reason == reason.value).label(name) for name, reason in named.items()
    ]
    each = select(*counts).where(review_sentences.c.task_pk == _tasks.id).lateral("each")
    sums = [cast(func.coalesce(func.sum(each.c[name]), 0), Integer).label(name) for name in named]
    today = func.date_trunc("day", func.now(), "UTC")
    of_app = and_(_tasks.app == asked.c.app, _tasks.created_at >= today)
    return select(*sums).select_from(review_tasks.join(each, true())).where(of_app).lateral("issued")


def _allowance(row: Row[Any]) -> Allowance:
    policy = DEFAULT_POLICY if row.daily_sentences is None else policy_of(row.policy_app, row._asdict())
    usual = None if row.spread is None else UsualDay(row.expected_flagged, row.expected_sampled, row.spread)
    return Allowance(policy, usual, row.flagged_issued, row.sampled_issued)
