"""What is stored of an answer with marks of citations is what is stored of the same one without, but for spans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gasp_core.detectors.two_pass import GAP
from gasp_core.identity import ScorerIdentity
from gasp_core.model import LanguageModel, load_model
from gasp_core.scorer import GroundingScorer
from schemas.decoding import Decoded
from schemas.interaction import AnswerMark, Interaction, Passage
from tests.integration.store_examples import OCCURRED_AT, advance, claim, record, rows
from tests.models import save_model
from worker.ingest.judging import exchange_of
from worker.ingest.scoring import Scoring
from worker.jobs.attribution import AttributionWork
from worker.jobs.leased import LeasePolicy
from worker.jobs.rescoring import RescoringWork
from worker.rules.selection import Reason, Selected, Selection
from worker.rules.settlement import Outcome, Settlement
from worker.rules.verdict import judge
from worker.runtime.metrics import Metrics
from worker.store.rescore_jobs import History
from worker.store.store import Store
from worker.store.task_contents import TaskFilter

SAID = ("The Belmora museum opens at nine. ", "Ticket number 7 costs twelve euros.\n", "Dogs must stay outside.")
SHOWN = (
    "The Belmora museum [doc1] opens at nine [doc2]. ",
    "[doc1]Ticket number 7 costs twelve euros. [doc1][doc2]\n",
    "Dogs must stay outside. [doc3]",
)
CUT = (" [doc1]", " [doc2]", "[doc1]", " [doc1][doc2]", " [doc3]")
SENTENCES = """
    SELECT i.interaction_id AS id, sentence_index AS i, substr(i.answer, start_char + 1, end_char - start_char) AS text,
        start_char, end_char, s.kind, n_tokens, score, gap, jsd_no_context, surprisal, s.skip_reason, flagged,
        supporting_chunk, supporting_passages, supporting_drop, contradicting_chunk, contradicting_drop
    FROM interactions i JOIN verdicts v ON v.interaction_pk = i.id JOIN sentences s ON s.verdict_id = v.id
    WHERE v.scorer_id = %(scorer_id)s ORDER BY i.id, sentence_index"""
PLACE = ("id", "text", "start_char", "end_char")
POLICY = LeasePolicy("worker-1", 60.0, max_attempts=2)
TOLERANCE = 1e-4


class OtherScorer(GroundingScorer):
    """Another identity with the same scores."""

    @property
    def identity(self) -> ScorerIdentity:
        """With a method of its own."""
        return replace(super().identity, method="gasp-other")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return load_model(str(save_model(tmp_path_factory.mktemp("marks") / "tiny")), device="cpu")


def marks() -> tuple[AnswerMark, ...]:
    shown, found, start = "".join(SHOWN), [], 0
    for cut in CUT:
        start = shown.index(cut, start)
        found.append(AnswerMark(start=start, end=start + len(cut)))
        start += len(cut)
    return tuple(found)


def logged(name: str, answer: str, marked: tuple[AnswerMark, ...] = ()) -> Interaction:
    return Interaction(
        interaction_id=name,
        app="museums",
        occurred_at=OCCURRED_AT,
        question="When does it open?",
        passages=(
            Passage(id="hours", text="The Belmora museum opens at nine and closes at six."),
            Passage(id="prices", text="Ticket number 7 costs twelve euros; children pay nothing."),
        ),
        answer=answer,
        answer_marks=marked,
    )


@pytest.fixture
def scorer_id(store: Store, model: LanguageModel) -> int:
    """A scorer that has judged the answer with its marks and without, flags everything and asks people about it."""
    scorer = GroundingScorer(model)
    scorer_id = store.scorers.register(scorer.identity)
    store.thresholds.ensure_default(scorer_id, 100.0, 100.0, "flags everything")
    threshold = store.thresholds.in_force(scorer_id)[None]
    assert store.offsets.claim(claim()) is not None
    both = [logged("marked", "".join(SHOWN), marks()), logged("plain", "".join(SAID))]
    chosen = Selection(1.0, Reason.FLAGGED, tuple(Selected(index, 1.0, Reason.FLAGGED) for index in range(len(SAID))))
    settlements = []
    for offset, one in enumerate(both):
        (grounding,) = scorer.score([exchange_of(one)])
        verdict = replace(judge([found.gap for found in grounding.sentences], threshold), selection=chosen)
        decoded = Decoded(one, "native")
        settlements.append(
            Settlement(
                record(offset),
                Outcome.SCORED,
                decoded=decoded,
                grounding=grounding,
                verdict=verdict,
                channels=("kafka",),
            )
        )
    store.settlements.settle(scorer_id, settlements, [advance(0, len(both))])
    return scorer_id


def of_both(url: str, scorer_id: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found = rows(url, SENTENCES, scorer_id=scorer_id)
    return [row for row in found if row["id"] == "marked"], [row for row in found if row["id"] == "plain"]


def without_place(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: pytest.approx(value, abs=TOLERANCE) if isinstance(value, float) else value
            for name, value in row.items()
            if name not in PLACE
        }
        for row in found
    ]


def assert_same(url: str, scorer_id: int) -> None:
    marked, plain = of_both(url, scorer_id)
    assert without_place(marked) == without_place(plain)
    assert [row["text"] for row in plain] == list(SAID)
    # The mark between two sentences belongs to that before it.
    assert [row["text"] for row in marked] == [SHOWN[0] + "[doc1]", SHOWN[1].removeprefix("[doc1]"), SHOWN[2]]


def test_marks_are_stored_and_move_spans_alone(store: Store, database_url: str, scorer_id: int) -> None:
    stored = {row["interaction_id"]: row for row in rows(database_url, "SELECT * FROM interactions")}
    assert stored["marked"]["answer"] == "".join(SHOWN)
    assert stored["marked"]["answer_marks"] == [mark.model_dump() for mark in marks()]
    assert stored["plain"]["answer_marks"] is None
    assert_same(database_url, scorer_id)
    tasks = {task.interaction_id: task for task in store.review_tasks.all(TaskFilter())}
    assert "".join(one.text for one in tasks["marked"].sentences) == tasks["marked"].answer == "".join(SHOWN)
    assert [one.score for one in tasks["marked"].sentences] == [
        pytest.approx(one.score, abs=TOLERANCE) for one in tasks["plain"].sentences
    ]


def test_attribution_and_second_opinions_read_the_answer_without_its_marks(
    store: Store, database_url: str, model: LanguageModel, scorer_id: int
) -> None:
    attribution = AttributionWork(
        queue=store.attribution_jobs,
        leases=store.leases,
        scoring=Scoring(GroundingScorer(model), Metrics()),
        scorer_id=scorer_id,
        policy=POLICY,
        metrics=Metrics(),
    )
    assert attribution.run()
    assert attribution.run()
    assert rows(database_url, "SELECT count(*) AS n FROM attribution_jobs WHERE state = 'done'") == [{"n": 2}]
    assert_same(database_url, scorer_id)
    assert store.opinion_jobs.queue(scorer_id, "judge", daily=10, limit=10) == 2 * len(SAID)
    jobs = [store.opinion_jobs.claim("worker-1", "judge", 60.0, 2) for _ in range(2 * len(SAID))]
    assert {job.answer for job in jobs if job} == {"".join(SAID)}
    assert sorted(job.sentence for job in jobs if job) == sorted(2 * [one.strip() for one in SAID])


def test_another_scorer_finds_the_same_sentences(
    store: Store, database_url: str, model: LanguageModel, scorer_id: int
) -> None:
    other = OtherScorer(model)
    other_id = store.scorers.register(other.identity)
    store.thresholds.ensure_default(other_id, 100.0, 100.0, "flags everything")
    assert store.rescore_jobs.queue(other_id, History(OCCURRED_AT), None, limit=10).queued == 2
    rescoring = RescoringWork(
        queue=store.rescore_jobs,
        leases=store.leases,
        thresholds=store.thresholds,
        scoring=Scoring(other, Metrics()),
        scorer_id=other_id,
        detector=GAP,
        policy=POLICY,
    )
    assert rescoring.run()
    assert_same(database_url, other_id)
    for old, new in zip(of_both(database_url, scorer_id), of_both(database_url, other_id), strict=True):
        assert [[row[name] for name in PLACE] for row in old] == [[row[name] for name in PLACE] for row in new]
