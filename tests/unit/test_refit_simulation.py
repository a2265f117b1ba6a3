"""What the refit benchmark draws, and that it tells a detector that lacks something from one that fits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.refit_grades import grades, markdown
from tests.benchmarks.refit_traffic import HELD_OUT, Asked, asked, halves, made_up

FITS, LACKS = made_up("made up")


def test_what_is_kept_to_measure_on_shares_no_source_with_what_is_labelled() -> None:
    pool, held_out = halves(FITS, np.random.default_rng(0))
    assert not set(FITS.sources[pool]) & set(FITS.sources[held_out])
    assert len(pool) + len(held_out) == len(FITS.scores)
    assert len(held_out) / len(FITS.scores) == pytest.approx(HELD_OUT, abs=0.05)


@pytest.mark.parametrize("how", list(Asked))
def test_labels_are_as_many_as_wanted_and_weights_make_up_for_how_they_were_chosen(how: Asked) -> None:
    pool = np.arange(len(FITS.scores))
    shares, plain = [], []
    for seed in range(40):
        given = asked(FITS, pool, 200, how, np.random.default_rng(seed))
        assert given is not None
        places, probabilities = given
        assert len(places) == len(set(places)) == 200
        shares.append(np.average(FITS.unsupported[places], weights=1 / probabilities))
        plain.append(FITS.unsupported[places].mean())
    truth = FITS.unsupported.mean()
    if how is Asked.AT_RANDOM:
        assert np.mean(plain) == pytest.approx(truth, abs=0.02)
    else:
        assert np.mean(plain) > truth + 0.1
    if how is not Asked.BY_SCORE_UNKNOWN:
        assert np.mean(shares) == pytest.approx(truth, abs=0.02)


def test_more_labels_than_there_are_sentences_cannot_be_had() -> None:
    assert asked(FITS, np.arange(100), 101, Asked.AT_RANDOM, np.random.default_rng(0)) is None


def test_a_correction_is_put_in_force_where_something_is_missing() -> None:
    fits, lacks = (
        [
            grade
            for draw in range(3)
            for grade in grades(one, Asked.AT_RANDOM, (50, 300), draw, np.random.default_rng(draw))
        ]
        for one in (FITS, LACKS)
    )
    assert [one.labels for one in fits] == [50, 300] * 3
    assert all(one.reason == "too_few_labels" and one.gain == 0 for one in fits + lacks if one.labels == 50)
    assert all(one.promoted and one.gain > 0.03 for one in lacks if one.labels == 300)
    assert not any(one.promoted for one in fits)
    table = list(markdown(fits + lacks, draws=3))
    assert sum("`lacks`" in line for line in table) == 1
