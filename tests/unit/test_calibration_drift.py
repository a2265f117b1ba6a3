"""Whether a change of the app is seen, and what becomes of labels from before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.test_calibration_data import made_up
from worker.rules.calibration.drift import freshest, population_stability, prior_drift
from worker.rules.calibration.labels import LabelledSentence, sample_of


def shifted() -> list[LabelledSentence]:
    """A prior of 0.2, then one of 0.6."""
    later = [replace(one, labelled_at=one.labelled_at + 1000) for one in made_up(400, seed=2, prior=0.6, name="b")]
    return made_up(400, seed=1, prior=0.2) + later


def test_a_shift_of_the_prior_is_reported_and_the_labels_from_before_it_are_let_go() -> None:
    sample = sample_of(shifted())
    drift = prior_drift(sample)
    assert drift.low > 0.2
    assert drift.low < drift.difference < drift.high
    kept = freshest(sample)
    assert kept.times.min() >= 900
    assert len(kept) > 200


def test_without_a_shift_every_label_counts() -> None:
    sample = sample_of(made_up(800, seed=3))
    assert freshest(sample) is sample


def test_labels_are_not_let_go_below_what_a_recalibration_needs() -> None:
    few = [replace(one, labelled_at=float(index)) for index, one in enumerate(shifted()[::8])]
    assert len(freshest(sample_of(few))) == len(few)


def test_the_population_stability_index_is_the_one_worked_by_hand() -> None:
    reference = np.arange(1000.0)
    assert population_stability(reference, reference) == 0
    # All above the highest of nine edges: half a score in each of nine bins, and 1000.5 in the tenth.
    now, then = np.array([0.5] * 9 + [1000.5]) / 1005, np.array([100.5] * 10) / 1005
    assert population_stability(np.full(1000, 2000.0), reference) == pytest.approx(
        float(((now - then) * np.log(now / then)).sum())
    )
    assert population_stability(np.full(10, 1.0), np.full(10, 1.0)) == 0
