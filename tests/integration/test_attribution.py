"""Attribution on a real database when the model cannot work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import pytest
from structlog.testing import capture_logs

from gasp_core.errors import ModelOutOfMemory
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.identity import ScorerIdentity
from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits
from tests.integration.store_examples import IDENTITY, advance, attributed, prepared, rows, scored
from tests.waiting import DEADLINE_S, wait_until
from worker.errors import ScorerBroken
from worker.ingest.scoring import Scoring
from worker.jobs.attribution import AttributionWork
from worker.jobs.leased import LeasePolicy
from worker.runtime.metrics import Metrics
from worker.store.store import Store

LEASE_S = 1.0
JOBS = "SELECT state, attempts, lease_owner, last_error, run_after <= now() AS due FROM attribution_jobs"
UNTOUCHED = {"state": "waiting", "attempts": 0, "lease_owner": None, "last_error": None, "due": True}


@dataclass(frozen=True, slots=True)
class FailingScorer:
    """Fails on whatever it is given."""

    error: Exception

    @property
    def identity(self) -> ScorerIdentity:
        """The identity of the tests."""
        return IDENTITY

    def score(self, _: Sequence[Exchange], __: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Fail."""
        raise self.error

    def reading(self, _: Sequence[Tap]) -> Self:
        return self

    def within(self, _: Limits) -> Self:
        """The same."""
        return self


@dataclass(frozen=True, slots=True)
class LongScorer:
    """Does something else first, and then finds what leave-one-out may find."""

    first: Callable[[], None]

    @property
    def identity(self) -> ScorerIdentity:
        """The identity of the tests."""
        return IDENTITY

    def score(self, _: Sequence[Exchange], __: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Take its time."""
        self.first()
        return [attributed([0.01, 0.9], [[0.01, -0.2], [0.3, 0.7]])]

    def reading(self, _: Sequence[Tap]) -> Self:
        return self

    def within(self, _: Limits) -> Self:
        """The same."""
        return self


def _attribution(store: Store, error: Exception) -> AttributionWork:
    """A worker whose scorer fails, and a job for it."""
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01, 0.9], threshold)], [advance(0, 1)])
    metrics = Metrics()
    return AttributionWork(
        queue=store.attribution_jobs,
        leases=store.leases,
        scoring=Scoring(FailingScorer(error), metrics),
        scorer_id=scorer_id,
        policy=LeasePolicy("worker-1", lease_s=60, max_attempts=2),
        metrics=metrics,
    )


def test_a_device_that_is_away_postpones_the_job_and_costs_it_no_attempt(store: Store, database_url: str) -> None:
    attribution = _attribution(store, ModelOutOfMemory("tiny", "nothing left"))
    with capture_logs() as logs:
        assert not attribution.run()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("attribution_postponed", "warning")]
    assert "GASP_DEVICE" in logs[0]["error"]
    assert rows(database_url, JOBS) == [UNTOUCHED]


def test_a_model_that_is_broken_stops_the_worker_and_costs_the_job_no_attempt(store: Store, database_url: str) -> None:
    attribution = _attribution(store, LookupError())
    with pytest.raises(ScorerBroken, match="GASP_DEVICE"):
        attribution.run()
    assert rows(database_url, JOBS) == [UNTOUCHED]


def test_a_job_that_takes_longer_than_its_lease_is_done_once(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01, 0.9], threshold)], [advance(0, 1)])
    metrics, claims = Metrics(), []

    def others_try() -> None:
        """Until three leases have run out, somebody else takes what is nobody's any more."""
        ends_at = time.monotonic() + 3 * LEASE_S
        wait_until(lambda: time.monotonic() > ends_at, what="three leases", deadline_s=DEADLINE_S)
        store.leases.reap()
        claims.append(store.attribution_jobs.claim("worker-2", scorer_id, 60, 5))

    attribution = AttributionWork(
        queue=store.attribution_jobs,
        leases=store.leases,
        scoring=Scoring(LongScorer(others_try), metrics),
        scorer_id=scorer_id,
        policy=LeasePolicy("worker-1", lease_s=LEASE_S, max_attempts=2),
        metrics=metrics,
    )
    assert attribution.run()
    assert claims == [None]
    done = rows(database_url, "SELECT state, attempts, last_error FROM attribution_jobs")
    assert done == [{"state": "done", "attempts": 1, "last_error": None}]
