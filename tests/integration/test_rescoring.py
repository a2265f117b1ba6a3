"""Re-scoring with a real model and database: two identities beside each other, faults, and workers that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import psycopg
import pytest

from gasp_core.detectors.fused_model import Term
from gasp_core.detectors.two_pass import GAP
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.identity import ScorerIdentity
from gasp_core.model import LanguageModel, load_model
from gasp_core.scorer import GroundingScorer
from schemas.decoding import Decoded
from schemas.interaction import Interaction
from tests.exchanges import exchange
from tests.integration.store_examples import OCCURRED_AT, advance, claim, record, rows
from tests.models import save_model
from worker.errors import ScorerBroken
from worker.ingest.judging import exchange_of
from worker.ingest.scoring import Scoring
from worker.jobs.leased import LeasePolicy
from worker.jobs.rescoring import RescoringWork
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.settlement import Outcome, Settlement
from worker.rules.verdict import judge
from worker.runtime.metrics import Metrics
from worker.store.leases import Backlog
from worker.store.rescore_jobs import History
from worker.store.store import Store
from worker.store.threshold_versions import Proposal

ANSWERS = 11
NO_PASSAGES = ANSWERS - 1
TOLERANCE = 1e-4
SENTENCES = """
    SELECT i.interaction_id, s.sentence_index, s.start_char, s.end_char, s.gap, s.skip_reason, s.flagged
    FROM interactions i JOIN verdicts v ON v.interaction_pk = i.id JOIN sentences s ON s.verdict_id = v.id
    WHERE v.scorer_id = %(scorer_id)s ORDER BY i.interaction_id, s.sentence_index"""
VERDICTS = "SELECT count(*) AS n FROM verdicts WHERE scorer_id = %(scorer_id)s"
JOBS = "SELECT state, attempts, last_error, run_after > now() AS pauses FROM rescore_jobs WHERE state <> 'done'"


class WatchedScorer(GroundingScorer):
    """Another identity with the same scores. ``watch`` sees the exchanges after they were scored, and may raise."""

    def __init__(self, model: LanguageModel, watch: Callable[[Sequence[Exchange]], None]) -> None:
        super().__init__(model)
        self._watch = watch

    @property
    def identity(self) -> ScorerIdentity:
        """With a method of its own."""
        return replace(super().identity, method="gasp-watched")

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score, then show."""
        found = super().score(exchanges, method)
        self._watch(exchanges)
        return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return load_model(str(save_model(tmp_path_factory.mktemp("rescoring") / "tiny")), device="cpu")


def _interaction(number: int) -> Interaction:
    logged = exchange(number) | {"occurred_at": OCCURRED_AT}
    return Interaction.model_validate(logged | ({"passages": []} if number == NO_PASSAGES else {}))


@pytest.fixture
def scorer_ids(store: Store, model: LanguageModel) -> tuple[int, int]:
    """Answers that one scorer has judged, none of them low, and another one that flags everything: the ids of both."""
    old = GroundingScorer(model)
    scorer_id = store.scorers.register(old.identity)
    store.thresholds.ensure_default(scorer_id, -100.0, -100.0, "flags nothing")
    assert store.offsets.claim(claim()) is not None
    threshold = store.thresholds.in_force(scorer_id)[None]
    logged = [_interaction(number) for number in range(ANSWERS)]
    found = old.score([exchange_of(one) for one in logged])
    settlements = [
        Settlement(
            record(offset),
            Outcome.SKIPPED if grounding.skip_reason else Outcome.SCORED,
            grounding.skip_reason,
            decoded=Decoded(one, "native"),
            grounding=grounding,
            verdict=judge([one.gap for one in grounding.sentences], threshold),
        )
        for offset, (one, grounding) in enumerate(zip(logged, found, strict=True))
    ]
    store.settlements.settle(scorer_id, settlements, [advance(0, ANSWERS)])
    other_id = store.scorers.register(WatchedScorer(model, lambda _: None).identity)
    store.thresholds.ensure_default(other_id, 100.0, 100.0, "flags everything")
    assert store.rescore_jobs.queue(other_id, History(OCCURRED_AT), None, limit=100).queued == ANSWERS
    return scorer_id, other_id


Worker = Callable[..., RescoringWork]


@pytest.fixture
def worker(store: Store, model: LanguageModel, scorer_ids: tuple[int, int]) -> Worker:
    """Makes a worker of the other scorer."""

    def make(
        watch: Callable[[Sequence[Exchange]], None] = lambda _: None, *, owner: str = "first", lease_s: float = 60.0
    ) -> RescoringWork:
        return RescoringWork(
            queue=store.rescore_jobs,
            leases=store.leases,
            thresholds=store.thresholds,
            scoring=Scoring(WatchedScorer(model, watch), Metrics()),
            scorer_id=scorer_ids[1],
            detector=GAP,
            policy=LeasePolicy(owner, lease_s, max_attempts=2),
            batch_answers=4,
        )

    return make


def _drain(worker: RescoringWork) -> int:
    """Run batches until no job is due; gives how many there were."""
    batches = 0
    while worker.run():
        batches += 1
    return batches


def _verdicts(url: str, scorer_id: int) -> int:
    """How many of the scorer's there are; the database lets none be there twice."""
    return int(rows(url, VERDICTS, scorer_id=scorer_id)[0]["n"])


def _fail_on(opening: str, exchanges: Sequence[Exchange]) -> None:
    if any(one.answer.startswith(opening) for one in exchanges):
        raise LookupError(opening)


def test_two_scorers_end_with_verdicts_of_both_each_under_its_own_threshold(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int]
) -> None:
    sizes: list[int] = []
    assert _drain(worker(lambda exchanges: sizes.append(len(exchanges)))) == 3
    assert sizes == [4, 4, 3]
    old, new = (rows(database_url, SENTENCES, scorer_id=scorer_id) for scorer_id in scorer_ids)
    places = ("interaction_id", "sentence_index", "start_char", "end_char", "skip_reason")
    assert [[row[name] for name in places] for row in new] == [[row[name] for name in places] for row in old]
    assert [row["gap"] for row in new] == [
        None if row["gap"] is None else pytest.approx(row["gap"], abs=TOLERANCE) for row in old
    ]
    assert {row["flagged"] for row in old} == {False, None}
    assert {row["flagged"] for row in new} == {True, None}
    skipped = [row for row in new if row["interaction_id"] == f"museum-{NO_PASSAGES}"]
    assert [row["skip_reason"] for row in skipped] == ["no_passages"] * 3
    strange = "SELECT v.id FROM verdicts v JOIN thresholds t ON t.id = v.threshold_id WHERE t.scorer_id <> v.scorer_id"
    assert rows(database_url, strange) == []
    # One for each answer that has a score, by the new scorer alone.
    assert store.attribution_jobs.backlog() == Backlog(waiting=ANSWERS - 1)
    assert store.rescore_jobs.backlog() == Backlog(done=ANSWERS)


def test_what_reviewers_taught_is_added_and_the_terms_are_kept(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int]
) -> None:
    learned = Correction((Term("coverage", 0.5, 0.25, 2.0), Term("length", 2.0, 1.0, -0.5)))
    added = Proposal(None, scorer_ids[1], 100.0, 100.0, "calibrated", "for tests", correction=learned)
    store.thresholds.activate(store.thresholds.add(added).id, "ada")
    _drain(worker())
    found = rows(database_url, "SELECT * FROM sentences WHERE terms IS NOT NULL ORDER BY verdict_id, sentence_index")
    assert found
    assert [row["correction"] for row in found] == pytest.approx([learned.of(row["terms"]) for row in found])
    assert [row["score"] for row in found] == [row["gap"] + row["correction"] for row in found]
    assert len({row["correction"] for row in found}) > 1
    surprisal = TERMS.index("surprisal")
    assert [row["terms"][surprisal] for row in found] == pytest.approx([row["surprisal"] for row in found])
    plain = "SELECT count(*) AS n FROM sentences s JOIN verdicts v ON v.id = s.verdict_id"
    ours = f"{plain} WHERE v.scorer_id = {scorer_ids[1]}"
    assert rows(database_url, f"{ours} AND score IS NULL AND coalesce(terms::text, correction::text) IS NULL") == rows(
        database_url, f"{ours} AND score IS NULL"
    )
    assert rows(database_url, f"{ours} AND score IS NOT NULL") == [{"n": len(found)}]


def test_an_exchange_that_fails_alone_is_retried_with_a_pause_then_fails_and_its_batch_is_kept(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int]
) -> None:
    rescoring = worker(partial(_fail_on, "The Belmora museum opens at nine"))
    _drain(rescoring)
    assert _verdicts(database_url, scorer_ids[1]) == ANSWERS - 1
    assert rows(database_url, JOBS) == [
        {"state": "waiting", "attempts": 1, "last_error": "LookupError", "pauses": True}
    ]
    rows(database_url, "UPDATE rescore_jobs SET run_after = now() WHERE state = 'waiting'")
    assert _drain(rescoring) == 1
    assert store.rescore_jobs.backlog() == Backlog(failed=1, done=ANSWERS - 1)


def test_what_a_worker_that_died_in_mid_batch_held_is_taken_up_and_nothing_is_lost_or_doubled(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int]
) -> None:
    def die(_: Sequence[Exchange]) -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        worker(die, lease_s=-1).run()
    assert _verdicts(database_url, scorer_ids[1]) == 0
    second = worker(owner="second")
    assert _drain(second) == 2
    assert store.leases.reap() == 4
    # What may have ended a worker goes alone.
    assert _drain(second) == 4
    assert _verdicts(database_url, scorer_ids[1]) == ANSWERS
    assert store.rescore_jobs.backlog() == Backlog(done=ANSWERS)


def test_a_database_that_goes_away_in_mid_batch_postpones_it(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int], postgres_server: str
) -> None:
    with _closable(postgres_server, database_url) as close:
        assert not worker(lambda _: close(), lease_s=-1).run()
    assert store.rescore_jobs.backlog() == Backlog(waiting=ANSWERS - 4, running=4)
    store.leases.reap()
    _drain(worker())
    assert _verdicts(database_url, scorer_ids[1]) == ANSWERS
    assert store.rescore_jobs.backlog() == Backlog(done=ANSWERS)


def test_a_model_that_fails_on_everything_stops_the_worker_and_costs_no_job_an_attempt(
    store: Store, database_url: str, worker: Worker
) -> None:
    with pytest.raises(ScorerBroken):
        worker(partial(_fail_on, "")).run()
    assert (
        rows(database_url, JOBS) == [{"state": "waiting", "attempts": 0, "last_error": None, "pauses": False}] * ANSWERS
    )
    assert store.rescore_jobs.backlog() == Backlog(waiting=ANSWERS)


def test_jobs_given_back_by_a_process_that_ends_are_not_written_by_the_work_it_abandons(
    store: Store, database_url: str, worker: Worker, scorer_ids: tuple[int, int]
) -> None:
    abandoned: list[RescoringWork] = []
    abandoned.append(worker(lambda _: abandoned[0].release()))
    assert abandoned[0].run()
    assert _verdicts(database_url, scorer_ids[1]) == 0
    assert store.rescore_jobs.backlog() == Backlog(waiting=ANSWERS)


@contextmanager
def _closable(server: str, url: str) -> Iterator[Callable[[], None]]:
    """Gives what ends every connection to the database and lets none in until the context is left."""
    name = rows(url, "SELECT current_database() AS name")[0]["name"]
    address = server.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(address, autocommit=True) as connection:

        def close() -> None:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])

        try:
            yield close
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
