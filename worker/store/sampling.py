"""How fast each app may ask people: its policy, what a usual day holds, and what was issued today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Double,
    Integer,
    Row,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    extract,
    func,
    literal,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert
from sqlalchemy.sql.selectable import LateralFromClause, TableValuedAlias

from worker.rules.allowance import Allowance, CommonAllowance, UsualDay
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.refit.correction import Correction
from worker.rules.selection import Reason
from worker.store.bulk import arrays, insert_from_arrays, unrolled
from worker.store.corrected import corrected_score
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
_PACE_COLUMNS = ("app", "scorer_id", "expected_flagged", "expected_sampled", "spread")

_logged, _judged, _paces, _tasks = interactions.c, verdicts.c, review_paces.c, review_tasks.c


@dataclass(frozen=True, slots=True)
class Traffic:
    """How many sentences of an app a scorer gave a score to on a day of the last week, on average."""

    app: str
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
    def common_allowance(self, connection: Connection) -> CommonAllowance:
        """What all apps without a policy of their own may still ask about today (UTC)."""
        row = connection.execute(_COMMON).one()
        policy = DEFAULT_POLICY if row.daily_sentences is None else policy_of(None, row._asdict())
        return CommonAllowance(policy, row.flagged_issued, row.sampled_issued)

    @reads
    def traffic(self, connection: Connection, apps: Sequence[str]) -> tuple[Traffic, ...]:
        """The traffic of the apps under each scorer that has judged answers of theirs of the last TRAFFIC_DAYS.

        An app that is younger has a day at least: its first hour says nothing of the other ones.
        """
        age_days = cast(extract("epoch", func.now() - func.min(_logged.stored_at)), Double) / _DAY_S
        a_day = func.sum(_judged.n_scored) / func.least(TRAFFIC_DAYS, func.greatest(1, age_days))
        found = (
            select(_logged.app, _judged.scorer_id, a_day.label("sentences_a_day"))
            .join(verdicts, _judged.interaction_pk == _logged.id)
            .where(_logged.app == any_(literal(list(apps), ARRAY(Text))), _judged.n_scored > 0)
            .where(_logged.stored_at >= func.now() - timedelta(days=TRAFFIC_DAYS))
            .group_by(_logged.app, _judged.scorer_id)
            .order_by(_logged.app, _judged.scorer_id)
        )
        return tuple(Traffic(row.app, row.scorer_id, float(row.sentences_a_day)) for row in connection.execute(found))

    @reads
    def recent_scores(
        self,
        connection: Connection,
        judged: Sequence[tuple[str, int]],
        limit: int,
        correction: Correction | None = None,
    ) -> dict[tuple[str, int], list[float]]:
        """For each app and scorer the scores of at most ``limit`` of the newest sentences of the last TRAFFIC_DAYS.

        They are those under ``correction`` (None: the detector's own), whatever the sentences were judged by; without
        terms a sentence has none under any.
        """
        found = connection.execute(_recent_scores(correction, limit), arrays(("app", "scorer_id"), judged))
        return {(row.app, row.scorer_id): row.scores for row in found}

    @writes
    def set_usual_days(self, connection: Connection, days: Mapping[tuple[str, int], UsualDay]) -> None:
        """Enter or change what a usual day of each app holds under a scorer."""
        # In one order, so that two of these wait for each other in one direction only.
        rows = [(*key, days[key].flagged, days[key].sampled, days[key].spread) for key in sorted(days)]
        if rows:
            connection.execute(_set_paces(), arrays(_PACE_COLUMNS, rows))


_COMMON = text("""
SELECT p.*, issued.*
FROM (
    SELECT count(*) FILTER (WHERE s.reason = 'flagged') AS flagged_issued,
        count(*) FILTER (WHERE s.reason = 'sampled') AS sampled_issued
    FROM review_tasks t
    JOIN review_sentences s ON s.task_pk = t.id
    WHERE t.created_at >= date_trunc('day', now(), 'UTC')
        AND NOT EXISTS (SELECT FROM review_policies own WHERE own.app = t.app)
) issued
LEFT JOIN review_policies p ON p.app IS NULL
""")


def _recent_scores(correction: Correction | None, most: int) -> Select[Any]:
    asked = unrolled(app=Text(), scorer_id=Integer())
    newest = (
        select(_judged.id, _judged.scored_at, _logged.stored_at)
        .join(interactions, _logged.id == _judged.interaction_pk)
        .where(_logged.app == asked.c.app, _logged.stored_at >= func.now() - timedelta(days=TRAFFIC_DAYS))
        .where(_judged.scorer_id == asked.c.scorer_id, _judged.n_scored > 0)
        .order_by(_logged.stored_at.desc())
        .limit(most)
        .correlate(asked)
        .lateral("newest")
    )
    score = corrected_score(sentences.c, correction)
    # By the time as well, which finds the week in which a sentence lies.
    theirs = and_(sentences.c.verdict_id == newest.c.id, sentences.c.scored_at == newest.c.scored_at)
    recent = (
        select(score.label("score"))
        .select_from(newest.join(sentences, theirs))
        .where(score.is_not(None))
        .order_by(newest.c.stored_at.desc())
        .limit(most)
        .lateral("recent")
    )
    found = select(asked.c.app, asked.c.scorer_id, func.array_agg(recent.c.score).label("scores"))
    return found.select_from(asked.join(recent, true())).group_by(asked.c.app, asked.c.scorer_id)


@cache
def _set_paces() -> Insert:
    entered = insert_from_arrays(review_paces, _PACE_COLUMNS)
    changed = {name: entered.excluded[name] for name in _PACE_COLUMNS[2:]} | {"computed_at": func.now()}
    return entered.on_conflict_do_update(constraint="pk_review_paces", set_=changed)


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
