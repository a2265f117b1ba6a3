"""Equal scores: a threshold flags all of a group or none of it, and what is stated holds for the one that is set."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_calibration_data import traffic
from worker.rules.calibration.choose import candidates
from worker.rules.calibration.guards import MAX_STEP, limited
from worker.rules.calibration.labels import Booleans, Floats, LabelledSentence, Population
from worker.rules.calibration.places import places_of
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Recalibration, recalibrate
from worker.rules.policy import DEFAULT_POLICY, Objective

TIED = 0.55
SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.25, math.nextafter(0.25, 1), 0.5, 3.0]), min_size=1, max_size=60)


def tied_traffic(count: int, seed: int, share: float) -> tuple[Floats, Booleans]:
    """Traffic of which that share, the part around TIED, has one score."""
    scores, unsupported = traffic(count, seed=seed)
    order = np.abs(scores - TIED).argsort()
    scores[order[: int(share * count)]] = TIED
    return scores, unsupported


def labelled(seed: int, share: float) -> list[LabelledSentence]:
    scores, unsupported = tied_traffic(900, seed, share)
    return [
        LabelledSentence(float(score), bool(bad), 1.0, index // 2, float(index))
        for index, (score, bad) in enumerate(zip(scores, unsupported, strict=True))
    ]


def followed(seed: int, share: float, in_force: float) -> list[Recalibration]:
    """One recalibration after another from the same labels, until nothing changes any more."""
    scores, _ = tied_traffic(4000, 50, share)
    seen = Population(scores, scores.reshape(-1, 4).min(axis=1), 500.0)
    results: list[Recalibration] = []
    present = InForce(in_force, in_force)
    while not results or (results[-1].outcome is CalibrationOutcome.NEW and len(results) < 12):
        results.append(recalibrate("bot", labelled(seed, share), [], seen, None, DEFAULT_POLICY, present))
        present = InForce(results[-1].flag_below, results[-1].attribute_below, results[-1].curve)
    return results


@pytest.mark.parametrize("in_force", [-0.2, 0.2, TIED])
@pytest.mark.parametrize("share", [0.25, 0.4])
def test_a_step_that_would_end_inside_a_group_of_equal_scores_does_not_stop_short_of_what_is_said_to_be_reached(
    share: float, in_force: float
) -> None:
    scores, truths = tied_traffic(100_000, 77, share)
    *_, last = followed(1, share, in_force)
    assert (last.outcome, last.reason) == (CalibrationOutcome.UNCHANGED, "reached")
    assert last.numbers["recall_low"] >= DEFAULT_POLICY.target  # type: ignore[operator]  # a float
    assert (scores < last.flag_below)[truths].mean() >= DEFAULT_POLICY.target


@given(SCORES, st.floats(-2, 4), st.floats(-2, 4))
def test_a_step_goes_all_the_way_or_as_far_as_allowed_but_at_least_over_one_group(
    values: list[float], in_force: float, wanted: float
) -> None:
    scores = np.array(values)
    bound = limited(wanted, in_force, scores)
    now, then, there = (int((scores < one).sum()) for one in (in_force, wanted, bound))
    direction, most = (1 if then > now else -1), MAX_STEP * len(scores)
    assert min(now, then) <= there <= max(now, then)
    if there != then:
        changes = [direction * (int((scores < one).sum()) - now) for one in places_of(scores).bounds]
        step, first = direction * (there - now), min(change for change in changes if change > 0)
        assert step == first or step <= most
        assert min(change for change in changes if change > step) > most
    else:
        assert bound == wanted


@given(SCORES)
def test_every_place_flags_as_many_as_it_says(values: list[float]) -> None:
    scores = np.array(values)
    places = places_of(scores)
    assert [int((scores < bound).sum()) for bound in places.bounds] == places.below.tolist()
    assert len(places.bounds) == len(set(values)) + 1
    assert (np.diff(places.bounds) > 0).all()


def test_the_places_beside_a_group_are_thresholds_to_consider() -> None:
    scores, _ = tied_traffic(4000, 50, 0.25)
    counts = {int((scores < bound).sum()) for bound in candidates(Population(scores, scores, 500.0), 0.1)}
    before = int((scores < TIED).sum())
    assert {before, before + int((scores == TIED).sum()), 0, len(scores)} <= counts


@pytest.mark.parametrize("objective", [Objective.PRECISION, Objective.BUDGET])
def test_what_is_in_force_is_reached_only_if_it_fulfils_the_objective_itself(objective: Objective) -> None:
    scores, _ = tied_traffic(4000, 50, 0.25)
    seen = Population(scores, scores.reshape(-1, 4).min(axis=1), 500.0)
    policy = replace(DEFAULT_POLICY, objective=objective, target=0.5 if objective is Objective.PRECISION else 100.0)
    first = recalibrate("bot", labelled(1, 0.25), [], seen, None, policy, InForce(0.3, 0.3))
    # One sentence of the traffic more than is allowed.
    beyond = float(places_of(scores).bounds[np.searchsorted(places_of(scores).bounds, first.flag_below, "right")])
    again = recalibrate("bot", labelled(1, 0.25), [], seen, None, policy, InForce(beyond, beyond, first.curve))
    assert again.reason == "reached"
    if objective is Objective.BUDGET:
        assert (seen.scores < again.flag_below).mean() * seen.sentences_a_day <= policy.target
    else:
        assert again.numbers["precision_low"] >= policy.target  # type: ignore[operator]  # a float
