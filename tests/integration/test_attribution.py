"""Attribution on a real database when the model cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pytest
from structlog.testing import capture_logs

from gasp_core.errors import ModelOutOfMemory
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.identity import ScorerIdentity
from gasp_core.plan import Limits
from tests.integration.store_examples import IDENTITY, advance, prepared, rows, scored
from worker.errors import ScorerBroken
from worker.ingest.scoring import Scoring
from worker.jobs.attribution import AttributionWork
from worker.jobs.leased import LeasePolicy
from worker.runtime.metrics import Metrics
from worker.store.store import Store

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
