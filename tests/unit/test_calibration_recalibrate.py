"""From labels to a threshold: what each objective gets, and each reason why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.test_calibration_data import labels, made_up, population, traffic
from worker.rules.calibration.curve import Curve
from worker.rules.calibration.guards import MAX_STEP, is_worse, limited
from worker.rules.calibration.labels import LabelledSentence, Population
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Recalibration, recalibrate
from worker.rules.policy import DEFAULT_POLICY, Objective, ReviewPolicy

IN_FORCE = InForce(0.4, 0.4)
TRAFFIC = population()
SCORES, TRUTHS = traffic(100_000, seed=77)


def run(
    labelled: Sequence[LabelledSentence],
    policy: ReviewPolicy = DEFAULT_POLICY,
    in_force: InForce = IN_FORCE,
    seen: Population = TRAFFIC,
) -> Recalibration:
    return recalibrate("bot", labelled, labelled, seen, SCORES[:3000], policy, in_force)


def achieved(result: Recalibration) -> tuple[float, float, float]:
    """Recall, precision and flagged share in all of the traffic."""
    flagged = result.flag_below > SCORES
    return float(flagged[TRUTHS].mean()), float(TRUTHS[flagged].mean()), float(flagged.mean())


def test_a_target_recall_is_reached_and_the_interval_holds_what_is_achieved() -> None:
    result = run(made_up(900, seed=1))
    recall, precision, share = achieved(result)
    assert (result.outcome, result.reason) == (CalibrationOutcome.NEW, "reached")
    assert 0.8 <= recall <= 0.95
    numbers = result.numbers
    for name, truth in (("recall", recall), ("precision", precision), ("prior", 0.25)):
        assert numbers[f"{name}_low"] <= truth <= numbers[f"{name}_high"]  # type: ignore[operator]  # all are floats
    assert numbers["flagged_share"] == pytest.approx(share, abs=0.03)
    assert numbers["recall_low"] >= 0.8  # type: ignore[operator]  # a float


def test_a_target_precision_is_reached() -> None:
    result = run(made_up(900, seed=2), replace(DEFAULT_POLICY, objective=Objective.PRECISION, target=0.5))
    assert result.outcome is CalibrationOutcome.NEW
    assert achieved(result)[1] >= 0.5


def test_a_dearer_miss_flags_more() -> None:
    cheap, dear = (
        run(made_up(900, seed=3), replace(DEFAULT_POLICY, objective=Objective.COST, target=price))
        for price in (2.0, 6.0)
    )
    assert cheap.numbers["cost"] is not None
    assert dear.flag_below > cheap.flag_below


def test_a_review_budget_is_kept_and_nearly_spent() -> None:
    result = run(made_up(900, seed=4), replace(DEFAULT_POLICY, objective=Objective.BUDGET, target=100.0))
    flagged = float((TRAFFIC.scores < result.flag_below).mean()) * TRAFFIC.sentences_a_day
    assert 95 < flagged <= 100


def test_answers_are_attributed_up_to_the_share_allowed_and_never_less_than_are_flagged() -> None:
    generous = run(made_up(900, seed=1), replace(DEFAULT_POLICY, attribution_share=0.95))
    assert (TRAFFIC.lowest < generous.attribute_below).mean() == pytest.approx(0.95, abs=0.01)
    thrifty = run(made_up(900, seed=1), replace(DEFAULT_POLICY, attribution_share=0.0))
    assert thrifty.attribute_below == thrifty.flag_below


def test_a_long_way_is_gone_in_steps() -> None:
    first = run(made_up(900, seed=5), in_force=InForce(-5.0, -5.0))
    assert (first.outcome, first.reason) == (CalibrationOutcome.NEW, "step_limited")
    assert first.numbers["flagged_share"] == pytest.approx(MAX_STEP, abs=0.005)
    assert first.flag_below < first.numbers["flag_below_wanted"]  # type: ignore[operator]  # a float
    assert limited(-5.0, 9.0, SCORES) == pytest.approx(np.quantile(SCORES, 1 - MAX_STEP), abs=0.01)


def test_the_threshold_that_is_in_force_already_is_left_alone() -> None:
    first = run(made_up(900, seed=1))
    again = run(made_up(900, seed=1), in_force=InForce(first.flag_below, first.attribute_below, first.curve))
    assert (again.outcome, again.reason, again.flag_below) == (
        CalibrationOutcome.UNCHANGED,
        "reached",
        first.flag_below,
    )
    assert again.curve == first.curve


def test_a_new_version_may_change_the_attribution_alone() -> None:
    first = run(made_up(900, seed=1))
    result = run(made_up(900, seed=1), in_force=InForce(first.flag_below, first.flag_below + 5))
    assert (result.outcome, result.flag_below) == (CalibrationOutcome.NEW, first.flag_below)
    assert result.attribute_below == first.attribute_below


def test_a_threshold_without_a_curve_or_with_a_stale_one_gets_a_version_that_gives_probabilities() -> None:
    first = run(made_up(900, seed=1))
    for curve in (None, Curve((0.0,), (0.9,))):
        result = run(made_up(900, seed=1), in_force=InForce(first.flag_below, first.attribute_below, curve))
        assert (result.outcome, result.flag_below, result.curve) == (
            CalibrationOutcome.NEW,
            first.flag_below,
            first.curve,
        )


def test_what_does_not_beat_the_version_in_force_on_held_out_labels_is_refused() -> None:
    policy = replace(DEFAULT_POLICY, objective=Objective.COST, target=4.0)
    refused = [
        result
        for seed in range(6)
        if (result := run(made_up(300, seed=seed), policy, InForce(0.3, 0.3))).reason == "worse_than_in_force"
    ]
    assert refused
    assert all(result.flag_below == 0.3 and result.outcome is CalibrationOutcome.REFUSED for result in refused)
    assert is_worse(0.7, 0.75, DEFAULT_POLICY)
    assert not is_worse(0.85, 0.95, DEFAULT_POLICY)


def test_a_precision_that_no_threshold_has_is_named() -> None:
    blind = made_up(900, seed=7, apart=0.0)
    result = run(blind, replace(DEFAULT_POLICY, objective=Objective.PRECISION, target=0.9), seen=population(apart=0.0))
    assert (result.outcome, result.reason) == (CalibrationOutcome.REFUSED, "unreachable")


GOOD = made_up(300, seed=8)


@pytest.mark.parametrize(
    ("labelled", "reason"),
    [
        ([], "too_few_labels"),
        (GOOD[:50], "too_few_labels"),
        ([replace(one, unsupported=False) for one in GOOD], "too_few_unsupported"),
        ([replace(one, unsupported=True) for one in GOOD], "too_few_supported"),
        ([replace(one, score=0.3) for one in GOOD], "no_spread"),
        ([replace(one, cluster=1) for one in GOOD], "too_few_interactions"),
        ([replace(GOOD[0], probability=1e-300), *GOOD[1:]], "too_little_effective"),
        ([replace(GOOD[0], score=math.nan), *GOOD], "not_finite"),
        ([replace(GOOD[0], labelled_at=math.inf), *GOOD], "not_finite"),
        ([replace(GOOD[0], probability=0.0), *GOOD], "bad_probability"),
        ([replace(GOOD[0], probability=1.1), *GOOD], "bad_probability"),
    ],
)
def test_labels_that_carry_no_threshold_are_refused_by_name(labelled: list[LabelledSentence], reason: str) -> None:
    result = run(labelled)
    assert (result.outcome, result.reason) == (CalibrationOutcome.REFUSED, reason)
    assert (result.flag_below, result.attribute_below, result.curve) == (0.4, 0.4, None)


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("scores", [[], [math.nan], [0.5], [0.5] * 100])
def test_odd_traffic_never_raises(scores: list[float], objective: Objective) -> None:
    seen = Population(np.array(scores), np.array(scores), 10.0)
    result = run(GOOD, replace(DEFAULT_POLICY, objective=objective, target=0.5), seen=seen)
    assert math.isfinite(result.flag_below)
    json.dumps(result.numbers, allow_nan=False)


def test_the_same_labels_in_any_order_give_the_same_result_as_flat_json() -> None:
    one, other = run(GOOD), run(GOOD[::-1])
    assert one == other
    assert json.loads(json.dumps(one.numbers, allow_nan=False)) == one.numbers


def test_an_app_is_not_shrunk_towards_its_own_labels() -> None:
    alone = recalibrate("bot", GOOD, [], TRAFFIC, None, DEFAULT_POLICY, IN_FORCE)
    assert recalibrate("bot", GOOD, GOOD, TRAFFIC, None, DEFAULT_POLICY, IN_FORCE) == alone
    assert alone.numbers["own_share"] == 1


def test_labels_of_several_sentences_at_one_score_are_no_trouble() -> None:
    rows = [(0.2 if index % 2 else 0.8, index % 3 == 0, 0.5, index // 2) for index in range(400)]
    assert math.isfinite(run(labels(*rows)).flag_below)
