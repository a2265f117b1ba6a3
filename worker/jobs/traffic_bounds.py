"""Bounds from the traffic: each app without labels has the lowest share of its own scores flagged.

Its scores are corrected as the version for all apps says, which other apps' labels may have taught.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import structlog

from worker.errors import Stopped
from worker.jobs.each_app import each_app
from worker.jobs.hold import is_held
from worker.rules.policy import Objective, ReviewPolicy
from worker.rules.traffic import (
    LEAST_ANSWERS,
    Recent,
    TrafficBounds,
    follows_traffic,
    has_moved,
    share_to_flag,
    traffic_bounds,
)
from worker.rules.verdict import TRAFFIC, threshold_for
from worker.store.interactions import Interactions
from worker.store.policies import ReviewPolicies
from worker.store.recent_scores import RECENT_DAYS, RecentScores
from worker.store.sampling import Sampling
from worker.store.scorers import Scorers
from worker.store.store import Store
from worker.store.threshold_versions import FOLLOWER, Proposal, Version
from worker.store.thresholds import Thresholds

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFollower:
    """Keeps the bounds of apps without labels where their traffic has them."""

    scorers: Scorers
    interactions: Interactions
    recent_scores: RecentScores
    sampling: Sampling
    thresholds: Thresholds
    policies: ReviewPolicies

    @classmethod
    def of(cls, store: Store) -> TrafficFollower:
        """With all that it takes of the store."""
        return cls(
            scorers=store.scorers,
            interactions=store.interactions,
            recent_scores=store.recent_scores,
            sampling=store.sampling,
            thresholds=store.thresholds,
            policies=store.policies,
        )

    def follow(self, stop: threading.Event) -> Iterator[Version]:
        """The versions that came into force, for each scorer that is at work and each app with enough answers.

        Raises Stopped between two apps if a stop was asked for, and StoreError; and WorkerError at the end if one of
        them failed.
        """
        return (version for version in each_app(FOLLOWER, self._subjects(stop)) if version is not None)

    def _subjects(self, stop: threading.Event) -> Iterator[tuple[str, Callable[[], Version | None]]]:
        scorers = self.scorers.at_work()
        apps = self.interactions.apps_with(LEAST_ANSWERS, RECENT_DAYS) if scorers else []
        for scorer_id in scorers:
            for app in apps:
                if stop.is_set():
                    raise Stopped(FOLLOWER)
                yield app, partial(self._follow, app, scorer_id)

    def _follow(self, app: str, scorer_id: int) -> Version | None:
        in_force = self.thresholds.in_force(scorer_id, [app])
        present, correction = threshold_for(app, in_force), in_force[None].correction
        if not follows_traffic(present) or is_held(self.thresholds.last_activation(app, scorer_id)):
            return None
        policy = self.policies.in_force(app)
        recent = self.recent_scores.of(app, scorer_id, correction)
        share = share_to_flag(policy, self._sentences_a_day(policy, app, scorer_id))
        wanted = None if recent is None else traffic_bounds(recent, share, policy.attribution_share)
        if recent is None or wanted is None:
            return None
        follows = present.learned_from == TRAFFIC and present.correction == correction
        if follows and not has_moved(recent, present, wanted):
            return None
        proposal = replace(_proposal(app, scorer_id, wanted, recent), correction=correction)
        added = self.thresholds.follow_traffic(proposal, present.id)
        if added is not None:
            log.info("bounds_followed_traffic", app=app, scorer_id=scorer_id, before=present.name, added=added.name)
        return added

    def _sentences_a_day(self, policy: ReviewPolicy, app: str, scorer_id: int) -> float:
        """Looked up only where it counts."""
        if policy.objective is not Objective.BUDGET:
            return 0.0
        found = (one.sentences_a_day for one in self.sampling.traffic([app]) if one.scorer_id == scorer_id)
        return next(found, 0.0)


def _proposal(app: str, scorer_id: int, bounds: TrafficBounds, recent: Recent) -> Proposal:
    return Proposal(
        app=app,
        scorer_id=scorer_id,
        flag_below=bounds.flag_below,
        attribute_below=bounds.attribute_below,
        learned_from=TRAFFIC,
        note=(
            f"flags the lowest {100 * bounds.share:.3g} % of {len(recent.scores):,} scores of "
            f"{len(recent.lowest):,} answers, {recent.since:%Y-%m-%d} to {recent.until:%Y-%m-%d}"
        ),
    )
