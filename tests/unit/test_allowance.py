"""What an app may still ask about today, and how a batch uses it up."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.test_verdict import DEFAULT
from worker.review.usual_day import LEAST_SPREAD, usual_day
from worker.rules.allowance import COMMON_BUDGETS, Allowance, CommonAllowance, UsualDay
from worker.rules.chooser import Chooser
from worker.rules.policy import DEFAULT_POLICY
from worker.rules.selection import LEAST_DENSITY, Reason, SamplingBudget, Share, select
from worker.rules.verdict import judge

POLICY = replace(DEFAULT_POLICY, daily_sentences=10, sampled_share=0.4, reviewers=2)
# One sentence far below the threshold, one just above it.
SCORES = (-2.0, 0.31)


def test_the_budget_is_split_by_the_policy_and_traffic_is_only_used_once_it_is_known() -> None:
    assert Allowance(POLICY, None, 2, 1).budget == SamplingBudget(6, 2, None, 4, 1, None)
    assert Allowance(POLICY, UsualDay(30.0, 200.0, 0.7)).budget == SamplingBudget(6, 0, 30.0, 4, 0, 200.0, 0.7)


def test_what_a_batch_asks_counts_for_the_answers_that_follow() -> None:
    chooser = Chooser({"bot": Allowance(POLICY)}, lambda: 0.0)
    verdicts = [chooser.chosen("bot", judge(SCORES, DEFAULT)) for _ in range(8)]
    paces = [SamplingBudget(6, issued, None, 4, issued, None) for issued in range(8)]
    assert [one.selection for one in verdicts] == [select(SCORES, DEFAULT.flag_below, budget, 0.0) for budget in paces]
    likely = [one.selection.probability for one in verdicts if one.selection]
    assert likely[0] == 1.0 > likely[-1]
    assert {one.reviewers for one in verdicts} == {2}


def test_each_app_has_its_own_budget_and_an_answer_that_nobody_is_asked_about_keeps_its_verdict() -> None:
    nothing = replace(POLICY, daily_sentences=0)
    chooser = Chooser({"bot": Allowance(POLICY), "idle": Allowance(nothing)}, lambda: 0.0)
    verdict = judge(SCORES, DEFAULT)
    assert chooser.chosen("idle", verdict) is verdict
    chosen = chooser.chosen("bot", verdict).selection
    assert chosen is not None
    assert [one.reason for one in chosen.sentences] == [Reason.FLAGGED, Reason.SAMPLED]


def test_a_flood_of_new_apps_is_asked_about_within_a_budget_that_they_have_together() -> None:
    apps = [f"app-{number}" for number in range(5_000)]
    draw = random.Random(3)
    common = CommonAllowance(POLICY)
    chooser = Chooser(dict.fromkeys(apps, Allowance(POLICY)), draw.random, common)
    verdict = judge((-2.0, -1.0, -0.5, 0.31, 0.4), DEFAULT)
    selections = [chooser.chosen(app, verdict).selection for app in apps]
    issued = Counter(one.reason for chosen in selections if chosen for one in chosen.sentences)
    assert issued[Reason.FLAGGED] <= 1.5 * COMMON_BUDGETS * POLICY.flagged_budget
    assert issued[Reason.SAMPLED] <= 1.5 * COMMON_BUDGETS * POLICY.sampled_budget
    # An app with a policy of its own has nothing to do with it.
    own = Chooser({"own": Allowance(replace(POLICY, app="own"))}, lambda: 0.0, CommonAllowance(POLICY, 10_000, 10_000))
    chosen = own.chosen("own", verdict).selection
    assert chosen is not None
    assert chosen.probability == 1.0


def test_a_few_apps_on_a_usual_day_have_all_of_their_own_budgets() -> None:
    assert CommonAllowance(POLICY, 30, 20).within(Allowance(POLICY).budget) == replace(
        Allowance(POLICY).budget, flagged_share=Share(1.0, 30), sampled_share=Share(1.0, 20)
    )


def test_a_usual_day_is_the_sample_scaled_to_the_traffic_of_a_day() -> None:
    gaps = np.array([-1.0, 0.0, 1.0, 2.0])
    usual = usual_day(gaps, sentences_a_day=40.0, flag_below=0.0)
    # Quartiles at -0.25 and 1.25. Below: 1 + 1/1.5. From the threshold up: 1, exp(-1/1.5), and exp(-2/1.5) or more.
    assert usual.spread == 1.5
    assert usual.flagged == pytest.approx(10 * (1 + 1 / 1.5))
    assert usual.sampled == pytest.approx(10 * (1 + np.exp(-1 / 1.5) + max(LEAST_DENSITY, np.exp(-2 / 1.5))))


def test_scores_that_do_not_differ_still_have_a_spread() -> None:
    assert usual_day(np.full(3, 0.7), 3.0, 0.1).spread == LEAST_SPREAD
