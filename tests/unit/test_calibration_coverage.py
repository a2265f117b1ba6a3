"""Labels that do not speak for all of the traffic are refused by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.test_calibration_data import made_up, population, traffic
from worker.rules.calibration.coverage import unspoken_for
from worker.rules.calibration.labels import LabelledSentence, Unanswered, sample_of
from worker.rules.calibration.recalibrate import CalibrationOutcome, InForce, Recalibration, recalibrate
from worker.rules.policy import DEFAULT_POLICY, Objective

SEEN = population()
IN_FORCE = 0.55


def run(labelled: list[LabelledSentence], in_force: float = IN_FORCE, **policy: object) -> Recalibration:
    wanted = replace(DEFAULT_POLICY, **policy)  # type: ignore[arg-type]  # fields of several types
    return recalibrate("bot", labelled, labelled, SEEN, None, wanted, InForce(in_force, in_force))


@pytest.mark.parametrize(
    ("objective", "target"),
    [(Objective.RECALL, 0.8), (Objective.PRECISION, 0.3), (Objective.COST, 6.0), (Objective.BUDGET, 100.0)],
)
def test_labels_of_flagged_sentences_alone_are_refused(objective: Objective, target: float) -> None:
    flagged = [one for one in made_up(900, seed=1) if one.score < IN_FORCE]
    result = run(flagged, objective=objective, target=target)
    assert (result.outcome, result.reason) == (CalibrationOutcome.REFUSED, "too_few_unflagged")
    assert (result.flag_below, result.numbers["n_unflagged"]) == (IN_FORCE, 0)
    assert "recall" not in result.numbers


def test_they_are_refused_after_the_threshold_was_lowered_as_well() -> None:
    asked_below = 0.75
    flagged = [one for one in made_up(900, seed=1) if one.score < asked_below]
    result = run(flagged, in_force=0.4)
    assert result.reason == "too_few_unflagged"
    assert result.numbers["n_unflagged"] > 0  # type: ignore[operator]  # a number


def test_labels_of_unflagged_sentences_alone_are_refused() -> None:
    unflagged = [one for one in made_up(2000, seed=1) if one.score >= IN_FORCE]
    assert run(unflagged).reason == "too_few_flagged"


def test_a_few_unflagged_ones_by_the_way_are_not_those_in_known_proportion() -> None:
    labelled = made_up(900, seed=1)
    some = [one for index, one in enumerate(labelled) if one.score < IN_FORCE or index % 20 == 0]
    assert sum(one.score >= IN_FORCE for one in some) >= 10
    assert run(some).reason == "too_few_unflagged"


@pytest.mark.parametrize("rate", [0.03, 0.1, 0.5])
def test_labels_in_known_proportion_are_hardly_ever_refused_however_few_are_asked_about(rate: float) -> None:
    refused = 0
    for seed in range(200):
        rng = np.random.default_rng(seed + 1000)
        scores, unsupported = traffic(1200, seed=seed)
        probabilities = np.where(scores < IN_FORCE, min(1.0, 3 * rate), rate)
        asked = np.flatnonzero(rng.random(len(scores)) < probabilities)
        labelled = [
            LabelledSentence(float(scores[i]), bool(unsupported[i]), float(probabilities[i]), int(i) // 2, 0.0)
            for i in asked
        ]
        refused += unspoken_for(sample_of(labelled), SEEN.scores, IN_FORCE) is not None
    assert refused <= 2


def test_what_was_asked_and_answered_by_nobody_does_not_take_the_place_of_labels() -> None:
    labelled = made_up(900, seed=1)
    flagged = [one for one in labelled if one.score < IN_FORCE]
    rest = [Unanswered(one.score, one.probability, one.labelled_at) for one in labelled if one.score >= IN_FORCE]
    result = recalibrate("bot", flagged, [], SEEN, None, DEFAULT_POLICY, InForce(IN_FORCE, IN_FORCE), rest)
    assert (result.reason, result.numbers["n_asked"]) == ("too_few_unflagged", len(labelled))
