"""From labels in the database to a corrected detector in force with its bounds, or to the reason why not."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.integration.store_examples import OCCURRED_AT, rows
from tests.integration.teaching_examples import HARMFUL, SENTENCES, Desk
from worker.cli import app as gasp_worker
from worker.jobs.recalibration import AppRecalibration
from worker.review.usual_day import renew_usual_days
from worker.rules.calibration.recalibrate import CalibrationOutcome
from worker.store.report_contents import Subject
from worker.store.store import Store


@pytest.fixture
def desk(store: Store, database_url: str) -> Desk:
    return Desk(store, database_url)


def without_refit(finding: AppRecalibration) -> dict[str, Any]:
    return {name: value for name, value in finding.result.numbers.items() if not name.startswith("refit")}


def test_what_reviewers_teach_comes_into_force_with_its_bounds_as_one_version(desk: Desk) -> None:
    desk.comes(120, effect=2.0)
    (found,) = desk.run(app="shop")
    assert (found.result.outcome, found.result.reason) == (CalibrationOutcome.NEW, "better")
    version = desk.in_force()
    assert found.added is not None
    assert (version.id, version.name, version.learned_from) == (found.added.id, "shop/1", "calibrated")
    assert version.correction is not None
    assert version.correction == found.correction
    most = max(version.correction.terms, key=lambda term: abs(term.coefficient))
    assert most.name == "gap"
    assert most.coefficient > 0
    assert version.correction.learned_until > 0
    assert version.curve is not None
    assert found.added.note is not None
    assert found.added.note.startswith("480 labels, for recall 0.8; corrected as 480 of them teach: AUC 0.")
    (run,) = rows(desk.url, "SELECT * FROM v_calibration_runs")
    assert (run["outcome"], run["reason"], run["refit"], run["threshold_version"]) == (
        "new",
        "better",
        "better",
        "shop/1",
    )
    assert run["auc_learned"] - run["auc_in_force"] == pytest.approx(run["auc_difference"])
    assert run["auc_difference"] > 1.645 * run["auc_standard_error"] > 0
    assert run["auc_lexical"] == pytest.approx(0.5, abs=0.1)
    entered = rows(desk.url, "SELECT reason FROM threshold_activations ORDER BY id")
    assert [row["reason"] for row in entered] == ["seeded", "calibrated"]


def test_the_bounds_are_of_corrected_scores(desk: Desk) -> None:
    desk.comes(200, effect=2.0)
    (found,) = desk.run(app="shop")
    share = found.result.numbers["flagged_share"]
    seen = desk.store.evidence.population(["shop"], desk.scorer_id, correction=found.correction)
    assert float((seen.scores < found.result.flag_below).mean()) == pytest.approx(share)
    desk.comes(100, effect=2.0, labelled=False)
    (later,) = rows(
        desk.url,
        "SELECT avg(flagged::int)::float AS share, count(correction) AS corrected FROM v_sentences"
        " WHERE threshold_version = 'shop/1'",
    )
    assert later["share"] == pytest.approx(share, abs=0.08)
    assert later["corrected"] == 100 * SENTENCES


def test_a_dry_run_finds_the_same_and_writes_nothing(desk: Desk) -> None:
    desk.comes(120, effect=2.0)
    before = desk.books()
    (tried,) = desk.run(app="shop", dry_run=True)
    assert desk.books() == before
    (done,) = desk.run(app="shop")
    assert (tried.result, tried.correction) == (done.result, done.correction)
    assert tried.added is None


@pytest.mark.parametrize(("answers", "effect", "reason"), [(20, 2.0, "too_few_labels"), (120, 0.0, "no_better")])
def test_what_teaches_nothing_leaves_its_reason_and_the_bounds_are_learned_as_before(
    desk: Desk, answers: int, effect: float, reason: str
) -> None:
    desk.comes(answers, effect=effect)
    (with_terms,) = desk.run(app="shop", dry_run=True)
    assert with_terms.correction is None
    assert with_terms.result.numbers["refit"] == reason
    assert with_terms.result.numbers["refit_n_labels"] == answers * SENTENCES
    rows(desk.url, "UPDATE sentences SET terms = NULL")
    rows(desk.url, "UPDATE review_sentences SET terms = NULL")
    (without,) = desk.run(app="shop", dry_run=True)
    assert without.result.numbers["refit"] == "too_few_labels"
    assert without_refit(without) == without_refit(with_terms)
    assert replace(without.result, numbers={}) == replace(with_terms.result, numbers={})


def test_labels_from_before_and_after_a_correction_are_compared_on_one_scale(desk: Desk) -> None:
    desk.comes(60, effect=2.0)
    base = sorted((label.score, label.terms) for _, label in desk.store.evidence.labelled_sentences(desk.scorer_id))
    version = desk.put(HARMFUL)
    desk.comes(60, effect=2.0)
    both = [label for _, label in desk.store.evidence.labelled_sentences(desk.scorer_id)]
    assert len(both) == 120 * SENTENCES
    stored = {row["score"] for row in rows(desk.url, "SELECT score FROM review_sentences WHERE correction IS NOT NULL")}
    assert len(stored) == 60 * SENTENCES
    assert stored.isdisjoint(label.score for label in both)
    assert set(base) <= {(label.score, label.terms) for label in both}
    assert np.mean([label.score for label in both]) == pytest.approx(1.5, abs=0.3)
    (own, corrected) = (
        desk.store.evidence.population(["shop"], desk.scorer_id, correction=one) for one in (None, version.correction)
    )
    assert sorted(own.scores) == pytest.approx(sorted(label.score for label in both))
    assert sorted(corrected.scores) == pytest.approx(sorted(label.score + HARMFUL.of(label.terms) for label in both))
    assert corrected.sentences_a_day == own.sentences_a_day


def test_traffic_without_terms_has_no_score_under_a_correction_and_is_still_traffic(desk: Desk) -> None:
    desk.comes(10, effect=0.0)
    rows(desk.url, "UPDATE sentences SET terms = NULL WHERE sentence_index = 0")
    rows(desk.url, "UPDATE sentences SET terms = terms[1:3] WHERE sentence_index = 1")
    seen = desk.store.evidence.population(["shop"], desk.scorer_id, correction=HARMFUL)
    assert len(seen.scores) == 20
    assert len(seen.lowest) == 10
    assert seen.sentences_a_day == 40
    assert len(desk.store.evidence.population(["shop"], desk.scorer_id).scores) == 40


def test_a_correction_in_force_is_kept_by_what_teaches_no_better_one(desk: Desk) -> None:
    desk.comes(120, effect=2.0)
    desk.run(app="shop")
    first = desk.in_force()
    (again,) = desk.run(app="shop")
    assert again.result.numbers["refit"] == "no_better"
    assert again.correction == first.correction
    assert desk.in_force().correction == first.correction
    # The bounds go on: a step was all that the first run might take of the way.
    assert (again.result.outcome, again.result.reason) == (CalibrationOutcome.NEW, "reached")
    assert desk.in_force().name == "shop/2"


def test_a_correction_that_is_worse_than_none_is_withdrawn_with_its_bounds(desk: Desk) -> None:
    desk.put(HARMFUL)
    desk.comes(120, effect=0.0)
    (found,) = desk.run(app="shop")
    assert (found.result.outcome, found.result.reason) == (CalibrationOutcome.NEW, "worse_than_shipped")
    version = desk.in_force()
    assert (version.name, version.correction) == ("shop/2", None)
    flagged = (desk.store.evidence.population(["shop"], desk.scorer_id).scores < version.flag_below).mean()
    assert float(flagged) == pytest.approx(found.result.numbers["flagged_share"])
    assert found.added is not None
    assert "not corrected any more" in (found.added.note or "")


def test_a_rollback_takes_correction_and_bounds_back_together(desk: Desk) -> None:
    desk.comes(120, effect=2.0)
    desk.run(app="shop")
    back = desk.store.thresholds.roll_back("shop", desk.scorer_id, "ada")
    assert back is not None
    assert desk.in_force() == desk.default
    desk.comes(1, effect=2.0, labelled=False)
    newest = rows(desk.url, "SELECT correction FROM sentences ORDER BY verdict_id DESC LIMIT 4")
    assert newest == [{"correction": None}] * 4


def test_an_app_without_a_version_of_its_own_follows_what_all_apps_taught(desk: Desk) -> None:
    desk.comes(60, effect=2.0, app="shop")
    desk.comes(60, effect=2.0, app="help")
    findings = {found.app: found for found in desk.run()}
    assert set(findings) == {"help", "shop", None}
    everyone = desk.in_force(None)
    assert everyone.correction == findings[None].correction is not None
    assert desk.in_force("new") == everyone
    desk.comes(5, effect=2.0, app="new", labelled=False)
    told = rows(
        desk.url, "SELECT DISTINCT threshold_version, correction IS NULL AS plain FROM v_sentences WHERE app = 'new'"
    )
    assert told == [{"threshold_version": "*/2", "plain": False}]


def test_without_traffic_that_has_terms_nothing_is_put_in_force(desk: Desk) -> None:
    desk.comes(120, effect=2.0)
    rows(desk.url, "UPDATE sentences SET terms = NULL")
    (found,) = desk.run(app="shop")
    assert (found.result.outcome, found.result.reason) == (CalibrationOutcome.REFUSED, "no_traffic")
    assert found.result.numbers["refit"] == "better"
    assert (found.correction, found.added) == (None, None)
    assert desk.in_force() == desk.default


def test_a_preview_of_a_version_with_a_correction_reckons_what_is_stored_anew(desk: Desk) -> None:
    desk.comes(30, effect=2.0, labelled=False)
    version = desk.put(HARMFUL, "elsewhere")
    rows(desk.url, "UPDATE sentences SET terms = NULL WHERE verdict_id = (SELECT min(id) FROM verdicts)")
    stored = rows(desk.url, "SELECT score, terms, flagged FROM sentences")
    known = [(row["score"] + HARMFUL.of(row["terms"]), row["flagged"]) for row in stored if row["terms"] is not None]
    found = desk.store.previews.flagging_below("shop", desk.scorer_id, version.flag_below, HARMFUL)
    assert (found.sentences, found.without_terms) == (30 * SENTENCES, SENTENCES)
    assert found.flagged == sum(row["flagged"] for row in stored)
    assert found.newly_flagged == sum(score < version.flag_below and not flagged for score, flagged in known)
    assert found.no_longer_flagged == sum(score >= version.flag_below and flagged for score, flagged in known)
    assert len(found.sample) == 10
    assert all((one.score < version.flag_below) != one.flagged for one in found.sample)
    plain = desk.store.previews.flagging_below("shop", desk.scorer_id, version.flag_below)
    assert plain.without_terms == 0


@pytest.fixture
def gasp(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command on the database; gives what it prints."""
    monkeypatch.setenv("GASP_DATABASE_URL", desk.url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)

    def run(*arguments: str) -> str:
        told = CliRunner().invoke(gasp_worker, arguments)
        assert told.exit_code == 0, told.output
        return told.output

    return run


def test_the_commands_show_which_versions_have_a_correction(desk: Desk, gasp: Callable[..., str]) -> None:
    desk.comes(120, effect=2.0)
    told = gasp("recalibrate", "--app", "shop")
    assert "shop, scorer 1: new (better), shop/1 is in force" in told
    assert re.search(r"^  correction +none -> gap \+", told, re.MULTILINE)
    assert re.search(r"^  refit_auc_challenger +0\.\d+$", told, re.MULTILINE)
    plain, corrected = gasp("thresholds", "list").splitlines()
    assert "corrected" not in plain
    assert "calibrated, corrected" in corrected
    version = desk.in_force()
    facts = [json.loads(line) for line in gasp("thresholds", "list", "--json").splitlines()]
    assert version.correction is not None
    assert [one["correction"] for one in facts] == [None, version.correction.to_json()]
    assert [", corrected" in line for line in gasp("thresholds", "history").splitlines()] == [False, True]
    (before,) = rows(desk.url, "SELECT count(*) FILTER (WHERE flagged) AS flagged FROM sentences")
    assert gasp("thresholds", "preview", str(version.id)).startswith(
        f"last week: 480 sentences, {before['flagged']} flagged; "
    )


def test_what_a_person_sets_is_of_scores_as_they_are_corrected(desk: Desk, gasp: Callable[..., str]) -> None:
    learned = desk.put(HARMFUL)
    gasp("thresholds", "set", "--app", "shop", "--flag-below", "1.25", "--note", "by hand", "--by", "ada")
    by_hand = desk.in_force()
    assert (by_hand.learned_from, by_hand.flag_below, by_hand.correction) == ("manual", 1.25, learned.correction)
    gasp("thresholds", "set", "--flag-below", "1.25", "--note", "for all", "--by", "ada")
    assert desk.in_force(None).correction is None
    desk.comes(30, effect=2.0, labelled=False)
    found = json.loads(gasp("thresholds", "preview", "--app", "shop", "--flag-below", "1.25", "--json"))
    assert (found["newly_flagged"], found["no_longer_flagged"]) == (0, 0)


def test_the_report_says_what_was_taught(desk: Desk, gasp: Callable[..., str], tmp_path: Path) -> None:
    desk.comes(120, effect=2.0)
    desk.run(app="shop")
    desk.comes(20, effect=2.0)
    page = tmp_path / "report.html"
    gasp("report", "--app", "shop", "--since", "2025-11-01", "--html", str(page))
    shown = page.read_text("utf-8")
    assert "of scores with what reviewers taught" in shown
    assert "which flatters a little" in shown
    assert re.search(r"<td>better: AUC 0\.\d{3}, learned 0\.\d{3} ± 0\.\d{3}, novel words 0\.\d{3}</td>", shown)
    version = desk.in_force()
    subject = Subject("shop", desk.scorer_id, OCCURRED_AT - timedelta(days=1), datetime.now(UTC))
    found = desk.store.reports.read(subject, version.correction)
    assert len(found.scores) == len(found.labels) == 140 * SENTENCES
    assert sorted(found.scores) == pytest.approx(sorted(label.score for label in found.labels))


def test_a_usual_day_is_reckoned_with_scores_as_they_are_corrected_now(desk: Desk) -> None:
    desk.comes(30, effect=0.0, labelled=False)
    desk.comes(30, effect=0.0, app="help", labelled=False)
    desk.put(HARMFUL)
    store = desk.store
    assert renew_usual_days(store.sampling, store.thresholds, store.interactions, threading.Event()) == "2 usual days"
    spreads = {row["app"]: row["spread"] for row in rows(desk.url, "SELECT app, spread FROM review_paces")}
    for app, correction in (("shop", HARMFUL), ("help", None)):
        seen = store.evidence.population([app], desk.scorer_id, correction=correction).scores
        low, high = np.percentile(seen, [25, 75])
        assert spreads[app] == pytest.approx(high - low)
    assert spreads["shop"] > 2 * spreads["help"]


def test_what_all_apps_taught_is_judged_as_it_is_by_an_app_and_what_it_taught_itself_without_its_labels(
    desk: Desk,
) -> None:
    seen_it_all = replace(HARMFUL, learned_until=1e12)
    desk.put(seen_it_all, None)
    desk.comes(120, effect=0.0)
    (of_all,) = desk.run(app="shop", dry_run=True)
    assert (of_all.result.reason, of_all.correction) == ("worse_than_shipped", None)
    # Learned anew without the labels that it is judged by, it would do no harm.
    desk.put(replace(seen_it_all, learned_until=1e12 + 1), "shop")
    (own,) = desk.run(app="shop", dry_run=True)
    assert own.result.numbers["refit"] == "no_better"
