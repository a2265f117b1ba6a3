"""Second opinions on real answers: who gets one, when none comes, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
import structlog

from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits
from tests.integration.review_examples import review_settings
from tests.integration.store_examples import IDENTITY, advance, attributed, prepared, rows, scored
from tests.second_opinions import Answer, Endpoint, endpoint, judging, save_classifier
from tests.waiting import wait_until
from worker.errors import SettingsError
from worker.jobs.retention import Remover
from worker.rules.opinion import Opinion, OpinionLabel
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.second_opinion.opinion_work import OpinionWork
from worker.second_opinion.start import OpinionNeeds, second_opinions
from worker.service import run_service
from worker.settings.roles import Role
from worker.store.opinion_jobs import REMOVED
from worker.store.retention_periods import Period
from worker.store.store import Store

# The first and the last of these are flagged.
GAPS = [0.02, 0.9, None, -0.3]
DROPS = [[-0.1, 0.4], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
VERIFIER = "judge-1 prompt-1"
JOBS = """
    SELECT sentence_index AS i, state, attempts, last_error, label, p_unsupported AS p, verifier
    FROM second_opinions ORDER BY id"""
WORDS_OF_MESSAGES = {"Zug", "train", "trains", "Passage", "passage", "token", "of-ours"}


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.second_opinion.opinion_work.QUEUE_EVERY_S", 0.0)


def judged(store: Store, answers: int, *, attribute: int) -> int:
    """So many stored answers, the first of which were attributed; gives the scorer's id."""
    scorer_id, threshold = prepared(store)
    batch = [scored(number, f"id-{number}", GAPS, threshold) for number in range(answers)]
    store.settlements.settle(scorer_id, batch, [advance(0, answers)])
    for _ in range(attribute):
        job = store.attribution_jobs.claim("worker-1", scorer_id, 60, 3)
        assert job is not None
        assert store.attribution_jobs.finish(job, attributed(GAPS, DROPS))
    return scorer_id


@pytest.fixture
def place(store: Store, database_url: str) -> Callable[..., OpinionNeeds]:
    def make(scorer_id: int, owner: str = "first", **overrides: Any) -> OpinionNeeds:
        return OpinionNeeds(
            settings=review_settings(database_url, **overrides),
            queue=store.opinion_jobs,
            leases=store.leases,
            scorer_id=scorer_id,
            owner=owner,
            stop=Stop(),
            telemetry=Telemetry(),
        )

    return make


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_classifier(tmp_path_factory.mktemp("second") / "tiny", ("entailment", "neutral")))


def due_now(url: str) -> None:
    rows(url, "UPDATE second_opinions SET run_after = now() WHERE state = 'waiting'")


def drain(work: OpinionWork) -> int:
    runs = 0
    while work.run():
        runs += 1
    return runs


@contextmanager
def beside(at: OpinionNeeds) -> Iterator[None]:
    """The thread that asks an endpoint, until the context is left."""
    with second_opinions(at) as on_the_engine:
        assert on_the_engine == ()
        yield


def asked_chat(place: Callable[..., OpinionNeeds], scorer_id: int, served: Endpoint, **overrides: Any) -> OpinionNeeds:
    return place(scorer_id, second_opinion_url=served.url, second_opinion_name="judge-1", **overrides)


# --- who gets one ---


def test_each_flagged_sentence_of_an_attributed_answer_gets_one_lowest_first_and_once(
    store: Store, database_url: str, place: Callable[..., OpinionNeeds], classifier: str
) -> None:
    scorer_id = judged(store, 2, attribute=1)
    before = rows(database_url, "SELECT * FROM sentences ORDER BY verdict_id, sentence_index")
    with second_opinions(place(scorer_id, second_opinion_model=classifier)) as (work,):
        assert drain(work) == 2
        assert not work.run()
    found = rows(database_url, JOBS)
    assert [(row["i"], row["state"], row["attempts"]) for row in found] == [(3, "done", 1), (0, "done", 1)]
    (verifier,) = {row["verifier"] for row in found}
    assert verifier.startswith("tiny@")
    for row in found:
        assert 0 < row["p"] < 1
        assert (row["label"] == "unsupported") == (row["p"] > 0.5)
    assert rows(database_url, "SELECT * FROM sentences ORDER BY verdict_id, sentence_index") == before
    shown = rows(database_url, "SELECT * FROM v_second_opinions ORDER BY sentence_index")
    assert [(row["interaction_id"], row["sentence_index"], row["score"]) for row in shown] == [
        ("id-0", 0, 0.02),
        ("id-0", 3, -0.3),
    ]
    assert all(row["agrees"] == (row["label"] == "unsupported") for row in shown)
    # Another verifier may be asked about the same sentences.
    assert store.opinion_jobs.queue(scorer_id, "another", daily=10, limit=10) == 2


def test_an_answer_that_was_replaced_or_attributed_long_ago_gets_none(store: Store, database_url: str) -> None:
    scorer_id = judged(store, 2, attribute=2)
    rows(database_url, "UPDATE interactions SET is_current = false WHERE interaction_id = 'id-0'")
    rows(
        database_url,
        "UPDATE verdicts SET attributed_at = now() - interval '25 hours' FROM interactions i "
        "WHERE i.id = interaction_pk AND interaction_id = 'id-1'",
    )
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=10, limit=10) == 0


def test_a_day_has_its_budget_which_the_lowest_of_all_get(store: Store, database_url: str) -> None:
    scorer_id = judged(store, 3, attribute=3)
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=4, limit=3) == 3
    assert {row["i"] for row in rows(database_url, JOBS)} == {3}
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=4, limit=3) == 1
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=4, limit=3) == 0
    rows(database_url, "UPDATE second_opinions SET created_at = date_trunc('day', now(), 'UTC') - interval '1 s'")
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=4, limit=9) == 2


def test_the_passage_that_supports_a_sentence_comes_first(store: Store) -> None:
    scorer_id = judged(store, 1, attribute=1)
    store.opinion_jobs.queue(scorer_id, VERIFIER, daily=10, limit=10)
    jobs = [store.opinion_jobs.claim("w", VERIFIER, 60, 3) for _ in range(2)]
    assert store.opinion_jobs.claim("w", VERIFIER, 60, 3) is None
    last, first = (job for job in jobs if job is not None)
    assert last.passages == ("Passage 0 on trains.", "Passage 1 on trains.")
    assert first.passages == ("Passage 1 on trains.", "Passage 0 on trains.")
    assert (first.sentence, last.sentence) == (first.answer.split(". ")[0] + ".", last.answer.split(". ")[3] + ".")
    assert not WORDS_OF_MESSAGES & set(repr(first).split())


# --- in a worker ---


class IdleScorer:
    """The scorer of the stored answers, with nothing to do."""

    identity = IDENTITY

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        raise AssertionError((len(exchanges), method))

    def reading(self, _: Sequence[Tap]) -> Self:
        return self

    def within(self, limits: Limits) -> Self:
        raise AssertionError(limits)


@pytest.mark.parametrize("who", ["classifier", "endpoint"])
def test_a_worker_with_the_role_attribute_asks_and_stops(
    store: Store, database_url: str, classifier: str, who: str
) -> None:
    judged(store, 1, attribute=1)
    stop = Stop()
    with endpoint(judging()) as served, ThreadPoolExecutor(1) as beside_us:
        chosen = {
            "classifier": {"second_opinion_model": classifier},
            "endpoint": {"second_opinion_url": served.url, "second_opinion_name": "judge-1"},
        }[who]
        settings = review_settings(database_url, **chosen)
        running = beside_us.submit(run_service, settings, {Role.ATTRIBUTE}, stop, load=lambda _: IdleScorer())
        try:
            wait_until(
                lambda: running.done() or {row["state"] for row in rows(database_url, JOBS)} == {"done"},
                what="an opinion on each",
            )
        finally:
            stop.set()
        assert running.result(30)
    assert len(rows(database_url, JOBS)) == 2


def test_a_classifier_that_cannot_be_used_stops_the_start(database_url: str, tmp_path: Path) -> None:
    settings = review_settings(database_url, second_opinion_model=str(tmp_path))
    with pytest.raises(SettingsError, match="GASP_SECOND_OPINION_MODEL"):
        run_service(settings, {Role.ATTRIBUTE}, Stop(), load=lambda _: IdleScorer())


# --- an endpoint ---


def test_an_endpoint_is_asked_in_a_thread_of_its_own(
    store: Store, database_url: str, place: Callable[..., OpinionNeeds]
) -> None:
    scorer_id = judged(store, 1, attribute=1)
    with (
        endpoint(judging("partly", 0.75), judging("cant_tell", 0.5)) as served,
        beside(asked_chat(place, scorer_id, served)),
    ):
        wait_until(
            lambda: [row["state"] for row in rows(database_url, JOBS)] == ["done"] * 2, what="an opinion on both"
        )
    shown = rows(database_url, "SELECT * FROM v_second_opinions ORDER BY sentence_index")
    assert [(row["label"], row["p_unsupported"], row["agrees"], row["verifier"]) for row in shown] == [
        ("cant_tell", 0.5, None, VERIFIER),
        ("partly", 0.75, True, VERIFIER),
    ]


def test_an_endpoint_that_fails_is_asked_again_with_pauses_then_given_up_and_no_text_is_logged(
    store: Store, database_url: str, place: Callable[..., OpinionNeeds], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.second_opinion.thread.pause_s", lambda _: 0.01)
    scorer_id = judged(store, 1, attribute=1)
    garbage = Answer(body=b'{"choices": [{"message": {"content": "Zug train Passage token=of-ours"}}]}')
    with (
        structlog.testing.capture_logs() as logs,
        endpoint(Answer(500), garbage, Answer(429)) as served,
        beside(asked_chat(place, scorer_id, served, second_opinion_daily=1, attribution_max_attempts=3)),
    ):
        for attempt in (1, 2):
            wait_until(partial(_is, database_url, "waiting", attempt), what=f"attempt {attempt} fails")
            assert rows(database_url, "SELECT run_after > now() AS pauses FROM second_opinions") == [{"pauses": True}]
            due_now(database_url)
        wait_until(partial(_is, database_url, "failed", 3), what="it is given up")
    (row,) = rows(database_url, JOBS)
    assert (row["attempts"], row["last_error"], row["label"], row["p"]) == (3, "status 429", None, None)
    retried = [entry["error"] for entry in logs if entry["event"] == "second_opinion_retried"]
    assert retried == ["status 500", "not_a_judgement"]
    assert [entry["error"] for entry in logs if entry["event"] == "second_opinion_failed"] == ["status 429"]
    assert not WORDS_OF_MESSAGES & set(str(logs).replace("=", " ").replace("'", " ").split())


def _is(url: str, state: str, attempts: int) -> bool:
    return [(row["state"], row["attempts"]) for row in rows(url, JOBS)] == [(state, attempts)]


# --- workers that die, and answers that go ---


def test_the_sentence_of_a_worker_that_died_comes_back_and_its_late_opinion_is_not_taken(
    store: Store, database_url: str
) -> None:
    scorer_id = judged(store, 1, attribute=1)
    store.opinion_jobs.queue(scorer_id, VERIFIER, daily=1, limit=1)
    late = store.opinion_jobs.claim("first", VERIFIER, -1, 2)
    assert late is not None
    assert store.opinion_jobs.claim("second", VERIFIER, 60, 2) is None
    assert store.leases.reap() == 1
    job = store.opinion_jobs.claim("second", VERIFIER, -1, 2)
    assert job is not None
    assert not store.opinion_jobs.finish(late, Opinion(OpinionLabel.SUPPORTED, 0.1, VERIFIER))
    assert rows(database_url, "SELECT label FROM second_opinions") == [{"label": None}]
    assert store.opinion_jobs.finish(job, Opinion(OpinionLabel.UNSUPPORTED, None, VERIFIER))
    assert rows(database_url, "SELECT label, p_unsupported AS p FROM second_opinions") == [
        {"label": "unsupported", "p": None}
    ]


def test_retention_removes_opinions_with_their_answers_and_what_waits_for_a_removed_text_fails(
    store: Store, database_url: str
) -> None:
    scorer_id = judged(store, 2, attribute=2)
    assert store.opinion_jobs.queue(scorer_id, VERIFIER, daily=3, limit=3) == 3
    job = store.opinion_jobs.claim("w", VERIFIER, 60, 3)
    assert job is not None
    assert store.opinion_jobs.finish(job, Opinion(OpinionLabel.SUPPORTED, 0.1, VERIFIER))
    # The week of the passages is dropped first.
    rows(database_url, f"DROP TABLE passages_{datetime.now(UTC):%Gw%V}")
    assert store.opinion_jobs.claim("w", VERIFIER, 60, 3) is None
    assert sorted(row["last_error"] or "" for row in rows(database_url, JOBS)) == ["", REMOVED, REMOVED]
    with psycopg.connect(database_url.replace("+psycopg", "", 1)) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE interactions SET stored_at = stored_at - interval '40 days'")
    store.retention_periods.set(Period(None, 30))
    assert Remover.of(store).remove(Stop()._event).removed.interactions == 2
    assert rows(database_url, JOBS) == []


def test_nobody_is_asked_by_default(store: Store, database_url: str, place: Callable[..., OpinionNeeds]) -> None:
    with second_opinions(place(judged(store, 1, attribute=1))) as work:
        assert work == ()
    assert rows(database_url, JOBS) == []
