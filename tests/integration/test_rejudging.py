"""Stored answers, judged anew by the version in force, without the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.integration.store_examples import OCCURRED_AT, OTHER_IDENTITY, advance, rows, scored, selected
from tests.integration.teaching_examples import HARMFUL, SENTENCES, Desk
from worker.cli import app as gasp_worker
from worker.commands.rejudge import rejudge_all
from worker.rules.calibration.curve import Curve
from worker.store.rejudging import Rejudged
from worker.store.store import Store
from worker.store.threshold_versions import Proposal

VERDICTS = "SELECT * FROM verdicts ORDER BY id"
SCORED = "SELECT * FROM sentences ORDER BY verdict_id, sentence_index"
ASKED = "SELECT * FROM review_sentences ORDER BY 1, 2"
TASKS = "SELECT * FROM review_tasks ORDER BY 1"


@pytest.fixture
def desk(store: Store, database_url: str) -> Desk:
    return Desk(store, database_url)


def rejudge(desk: Desk, app: str = "shop", *, dry_run: bool = False) -> tuple[int, int, int, int]:
    steps = list(rejudge_all(desk.store.rejudging, app, desk.scorer_id, OCCURRED_AT, dry_run=dry_run))
    return tuple_of(steps)


def tuple_of(steps: list[Rejudged]) -> tuple[int, int, int, int]:
    """Answers, without terms, newly flagged, no longer flagged."""
    return (
        sum(step.answers for step in steps),
        sum(step.without_terms for step in steps),
        sum(step.newly_flagged for step in steps),
        sum(step.no_longer_flagged for step in steps),
    )


def by_verdict(found: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in found:
        grouped.setdefault(row["verdict_id"], []).append(row)
    return grouped


def test_stored_answers_get_the_verdict_that_the_version_in_force_would_have_given(desk: Desk) -> None:
    desk.comes(30, effect=2.0, labelled=False)
    before = rows(desk.url, SCORED)
    proposal = Proposal(
        "shop", desk.scorer_id, 1.0, 1.5, "calibrated", "", Curve((-5.0, 5.0), (0.9, 0.1)), correction=HARMFUL
    )
    version = desk.store.thresholds.set_by_hand(proposal, "ada")
    previewed = desk.store.previews.flagging_below("shop", desk.scorer_id, 1.0, HARMFUL)
    changed = (30, 0, previewed.newly_flagged, previewed.no_longer_flagged)
    assert min(changed[2:]) > 0
    assert rejudge(desk) == changed
    after = rows(desk.url, SCORED)
    for old, new in zip(before, after, strict=True):
        assert new["score"] == pytest.approx(old["score"] + HARMFUL.of(old["terms"]))
        assert new["correction"] == pytest.approx(HARMFUL.of(old["terms"]))
        assert new["flagged"] == (new["score"] < 1.0)
        assert version.curve is not None
        assert new["unsupported_probability"] == pytest.approx(version.curve.probability(new["score"]))
        others = {"score", "correction", "flagged", "unsupported_probability"}
        assert {name: value for name, value in new.items() if name not in others} == {
            name: value for name, value in old.items() if name not in others
        }
    found = by_verdict(after)
    for verdict in rows(desk.url, VERDICTS):
        theirs = found[verdict["id"]]
        assert verdict["threshold_id"] == version.id
        assert verdict["lowest_score"] == min(row["score"] for row in theirs)
        assert verdict["n_flagged"] == sum(row["flagged"] for row in theirs)
    assert {row["threshold_version"] for row in rows(desk.url, "SELECT threshold_version FROM v_sentences")} == {
        "shop/1"
    }


def test_what_is_judged_by_the_version_in_force_is_passed_over(desk: Desk) -> None:
    desk.comes(10, effect=0.0, labelled=False)
    assert rejudge(desk) == (0, 0, 0, 0)
    desk.put(HARMFUL)
    assert rejudge(desk)[0] == 10
    once = rows(desk.url, SCORED)
    assert rejudge(desk) == (0, 0, 0, 0)
    assert rows(desk.url, SCORED) == once


def test_back_under_the_version_before_the_scores_are_the_detectors_again(desk: Desk) -> None:
    desk.comes(10, effect=0.0, labelled=False)
    before = rows(desk.url, SCORED)
    desk.put(HARMFUL)
    rejudge(desk)
    desk.store.thresholds.roll_back("shop", desk.scorer_id, "ada")
    assert rejudge(desk)[0] == 10
    after = rows(desk.url, SCORED)
    assert [row["score"] for row in after] == pytest.approx([row["score"] for row in before])
    assert [(row["correction"], row["flagged"]) for row in after] == [(None, row["flagged"]) for row in before]


def test_it_goes_on_where_it_was_broken_off(desk: Desk) -> None:
    desk.comes(7, effect=0.0, labelled=False)
    desk.put(HARMFUL)
    first = desk.store.rejudging.step("shop", desk.scorer_id, OCCURRED_AT, None, limit=3)
    assert first.answers == 3
    assert first.end is not None
    second = desk.store.rejudging.step("shop", desk.scorer_id, OCCURRED_AT, first.end, limit=3)
    assert second.answers == 3
    done = rows(desk.url, SCORED)
    assert rejudge(desk)[0] == 1
    assert rejudge(desk)[0] == 0
    changed = [new != old for old, new in zip(done, rows(desk.url, SCORED), strict=True)]
    assert changed == [True] * SENTENCES + [False] * 6 * SENTENCES


def test_a_dry_run_says_the_same_and_writes_nothing(desk: Desk) -> None:
    desk.comes(10, effect=0.0, labelled=False)
    desk.put(HARMFUL)
    before = rows(desk.url, VERDICTS), rows(desk.url, SCORED)
    told = rejudge(desk, dry_run=True)
    assert (rows(desk.url, VERDICTS), rows(desk.url, SCORED)) == before
    assert rejudge(desk) == told


def test_answers_without_terms_stay_as_they_are_under_a_correction_alone(desk: Desk) -> None:
    desk.comes(4, effect=0.0, labelled=False)
    rows(desk.url, "UPDATE sentences SET terms = NULL WHERE verdict_id = 1 AND sentence_index = 2")
    old = [row for row in rows(desk.url, SCORED) if row["verdict_id"] == 1]
    desk.put(HARMFUL)
    assert rejudge(desk)[:2] == (3, 1)
    assert [row for row in rows(desk.url, SCORED) if row["verdict_id"] == 1] == old
    assert rows(desk.url, VERDICTS)[0]["threshold_id"] == desk.default.id
    desk.store.thresholds.set_by_hand(Proposal("shop", desk.scorer_id, 9.0, 9.0, "manual", "all"), "ada")
    assert rejudge(desk)[:2] == (4, 0)
    assert {row["flagged"] for row in rows(desk.url, SCORED)} == {True}


def test_what_people_were_asked_stays_and_what_is_low_now_waits_for_attribution(desk: Desk) -> None:
    asked = selected(scored(0, "asked", [5.0, 6.0], desk.default))
    desk.store.settlements.settle(desk.scorer_id, [asked], [advance(0, 1)])
    desk.offset = 1
    desk.comes(10, effect=0.0)
    before = rows(desk.url, ASKED), rows(desk.url, TASKS), rows(desk.url, "SELECT * FROM outbox")
    waiting = desk.store.attribution_jobs.backlog().waiting
    desk.store.thresholds.set_by_hand(Proposal("shop", desk.scorer_id, 9.0, 9.0, "manual", "all"), "ada")
    assert rejudge(desk)[0] == 11
    assert (rows(desk.url, ASKED), rows(desk.url, TASKS), rows(desk.url, "SELECT * FROM outbox")) == before
    assert waiting < desk.store.attribution_jobs.backlog().waiting == 11
    labels = [label for _, label in desk.store.evidence.labelled_sentences(desk.scorer_id)]
    assert len(labels) == 10 * SENTENCES


def test_only_an_answers_last_verdict_is_judged_anew_and_no_other_app(desk: Desk) -> None:
    desk.comes(2, effect=0.0, app="shop", labelled=False)
    desk.comes(2, effect=0.0, app="help", labelled=False)
    other = desk.store.scorers.register(OTHER_IDENTITY)
    rows(
        desk.url,
        """INSERT INTO verdicts (interaction_pk, scorer_id, method, skip_reason, context_tokens, context_tokens_cut,
            answer_tokens, answer_tokens_cut, n_sentences, n_scored, n_flagged, context_windows)
        SELECT interaction_pk, %(other)s, method, 'refusal', 0, 0, 0, 0, 0, 0, 0, 1 FROM verdicts WHERE id = 1""",
        other=other,
    )
    desk.put(HARMFUL)
    desk.put(HARMFUL, "help")
    assert rejudge(desk)[0] == 1
    judged = rows(desk.url, "SELECT threshold_id FROM verdicts ORDER BY id")
    assert [row["threshold_id"] for row in judged] == [1, 2, 1, 1, None]


def test_the_command_says_what_changed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GASP_DATABASE_URL", desk.url)
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)
    desk.comes(3, effect=0.0, app="shop", labelled=False)
    desk.comes(3, effect=0.0, app="help", labelled=False)
    rows(desk.url, "UPDATE sentences SET terms = NULL WHERE verdict_id = 1")
    desk.put(HARMFUL)
    tried = CliRunner().invoke(gasp_worker, ["rejudge", "--since", "2025-11-01", "--app", "shop", "--dry-run"])
    assert "2 answers would be judged anew" in tried.output
    assert "1 stay as they are" in tried.output
    done = CliRunner().invoke(gasp_worker, ["rejudge", "--since", "2025-11-01", "--json"])
    assert done.exit_code == 0, done.output
    facts = {one["app"]: one for one in map(json.loads, done.output.splitlines())}
    assert (facts["shop"]["answers"], facts["shop"]["without_terms"], facts["help"]["answers"]) == (2, 1, 0)
    unknown = CliRunner().invoke(gasp_worker, ["rejudge", "--since", "2025-11-01", "--app", "nobody"])
    assert unknown.exit_code != 0
