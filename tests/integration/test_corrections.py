"""What reviewers taught, in the database: terms and corrections of sentences, and versions that have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gasp_core.detectors.fused_model import Term
from gasp_core.detectors.two_pass import GAP
from gasp_core.model import load_model
from gasp_core.scorer import GroundingScorer
from schemas.decoding import Decoded
from schemas.interaction import Interaction
from tests.exchanges import exchange
from tests.integration.store_examples import advance, prepared, record, rows, scored, selected
from tests.models import save_model
from worker.ingest.judging import Found, Judging
from worker.ingest.scoring import Scoring
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.verdict import TermValues, Threshold
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.store import Store
from worker.store.threshold_versions import Proposal

LEARNED = Correction((Term("coverage", 0.5, 0.25, 0.5), Term("surprisal", 2.0, 1.0, -0.25)))
STORED = "SELECT score, correction, terms, flagged FROM sentences ORDER BY verdict_id, sentence_index"


def terms(coverage: float = 0.5, surprisal: float = 2.0) -> TermValues:
    """As exact as they are stored."""
    return tuple({"coverage": coverage, "surprisal": surprisal}.get(name, 0.25) for name in TERMS)


def taught(store: Store, scorer_id: int, app: str | None = None) -> Threshold:
    """A version with a correction, in force."""
    proposal = Proposal(app, scorer_id, 0.1, 0.5, "calibrated", "for tests", correction=LEARNED)
    store.thresholds.activate(store.thresholds.add(proposal).id, "ada")
    return store.thresholds.in_force(scorer_id)[app]


def test_a_version_is_read_back_with_its_correction(store: Store) -> None:
    scorer_id, default = prepared(store)
    assert default.correction is None
    assert taught(store, scorer_id, "shop").correction == LEARNED
    assert [version.correction for version in store.thresholds.versions()] == [None, LEARNED]
    back = store.thresholds.roll_back("shop", scorer_id, "ada")
    assert back is not None
    assert (back.left.correction, back.back_to) == (LEARNED, None)


def test_the_history_says_which_versions_have_one(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    taught(store, scorer_id)
    told = rows(database_url, "SELECT threshold_version, has_correction FROM v_threshold_history ORDER BY time")
    assert told == [
        {"threshold_version": "*/1", "has_correction": False},
        {"threshold_version": "*/2", "has_correction": True},
    ]


def test_a_sentence_is_stored_with_its_terms_and_what_was_added(store: Store, database_url: str) -> None:
    scorer_id, default = prepared(store)
    version = taught(store, scorer_id)
    plain = scored(0, "a", [0.25, None], default, terms=[terms(0.75), None])
    learned = scored(1, "b", [0.25, 0.25], version, terms=[terms(0.75), terms(0.375, 3.0)])
    store.settlements.settle(scorer_id, [plain, learned, scored(2, "c", [0.25], version)], [advance(0, 3)])
    assert [tuple(row.values()) for row in rows(database_url, STORED)] == [
        (0.25, None, list(terms(0.75)), False),
        (None, None, None, None),
        (0.75, 0.5, list(terms(0.75)), False),
        (-0.25, -0.5, list(terms(0.375, 3.0)), True),
        (0.25, None, None, False),
    ]
    lowest = rows(database_url, "SELECT lowest_score, n_flagged FROM verdicts ORDER BY id")
    assert [tuple(row.values()) for row in lowest] == [(0.25, 0), (-0.25, 1), (0.25, 0)]
    seen = rows(database_url, "SELECT score, correction FROM v_flagged_sentences")
    assert seen == [{"score": -0.25, "correction": -0.5}]


def test_a_task_keeps_the_terms_of_its_sentences(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    version = taught(store, scorer_id)
    asked = selected(scored(0, "a", [0.9, 0.25], version, terms=[terms(), terms(0.25)]), indexes=(1,))
    store.settlements.settle(scorer_id, [asked], [advance(0, 1)])
    kept = rows(database_url, "SELECT sentence_index, score, correction, terms FROM review_sentences")
    assert [tuple(row.values()) for row in kept] == [(1, -0.25, -0.5, list(terms(0.25)))]


@pytest.mark.parametrize("table", ["sentences", "review_sentences"])
def test_no_term_is_stored_that_is_not_a_finite_number(store: Store, database_url: str, table: str) -> None:
    scorer_id, default = prepared(store)
    one = selected(scored(0, "a", [0.05], default, terms=[terms()]))
    store.settlements.settle(scorer_id, [one], [advance(0, 1)])
    for value in ("NaN", "Infinity", "-Infinity", "NULL"):
        with pytest.raises(Exception, match=f"ck_{table}_terms_finite"):
            rows(database_url, f"UPDATE {table} SET terms[2] = {value if value == 'NULL' else repr(value)}")
    assert rows(database_url, f"SELECT terms FROM {table}") == [{"terms": list(terms())}]


def test_a_worker_judges_by_what_its_app_was_taught_and_keeps_what_it_read(store: Store, tmp_path: Path) -> None:
    scorer = GroundingScorer(load_model(str(save_model(tmp_path / "tiny")), device="cpu"))
    scorer_id = store.scorers.register(scorer.identity)
    store.thresholds.ensure_default(scorer_id, 0.1, 0.5, "for tests")
    taught(store, scorer_id, "taught")
    telemetry = Telemetry()
    judging = Judging(
        interactions=store.interactions,
        thresholds=store.thresholds,
        sampling=store.sampling,
        scoring=Scoring(scorer, telemetry.metrics),
        scorer_id=scorer_id,
        detector=GAP,
        retry=RetryPolicy(Stop(), telemetry, part="test", within_s=60),
        metrics=telemetry.metrics,
    )
    logged = [Interaction.model_validate(exchange(0) | {"app": app}) for app in ("taught", "plain")]
    found = [Found(record(place), (Decoded(one, "native"),)) for place, one in enumerate(logged)]
    learned, plain = (one.verdict for one in judging.settlements(found))
    assert learned is not None
    assert plain is not None
    assert learned.terms == plain.terms
    assert (learned.threshold.name, plain.threshold.name) == ("taught/1", "*/1")
    known = [(values, score) for values, score in zip(plain.terms, plain.scores, strict=True) if score is not None]
    assert known
    assert [one for one in learned.scores if one is not None] == [
        score + LEARNED.of(values) for values, score in known if values is not None
    ]
    assert set(plain.corrections) == {None}


def test_a_version_is_of_one_app_and_another_goes_by_the_default(store: Store) -> None:
    scorer_id, default = prepared(store)
    own = taught(store, scorer_id, "shop")
    in_force = store.thresholds.in_force(scorer_id)
    assert in_force == {None: default, "shop": own}
