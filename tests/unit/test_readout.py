"""A readout: what is learned, what is written, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from gasp_core.detectors.readout.detector import readout_from
from gasp_core.detectors.readout.readout import FORM, MAX_BYTES, load_readout
from gasp_core.detectors.readout.terms import TERMS
from gasp_core.errors import DetectorError, InputError, ModelUnsupported
from gasp_core.gasp_rag.metrics import roc_auc
from gasp_core.identity import ScorerIdentity
from gasp_core.training.fit import fit, out_of_fold, platt
from gasp_core.training.learn import learn
from gasp_core.training.rows import Rows

SCORER = ScorerIdentity("tiny", "0123456789", "float32", "plain-1", "gasp-3")
WIDTH = 12


def rows(count: int = 600, *, sets: int = 2, seed: int = 0) -> Rows:
    """Sentences whose label shows in one direction of the states, and in nothing else that is the same in both sets."""
    random = np.random.default_rng(seed)
    unsupported = random.random(count) < 0.3
    of_set = np.arange(count) % sets
    states = random.normal(size=(count, WIDTH)).astype(np.float32)
    states[:, 3] += np.where(unsupported, -1.5, 0.0)
    states[:, 5] += 4.0 * of_set  # the sets differ, which says nothing of labels
    return Rows(
        terms=random.normal(size=(count, len(TERMS))),
        states=states,
        unsupported=unsupported,
        sets=of_set,
        sources=np.arange(count) // 3,
        weights=np.ones(count),
    )


def test_what_shows_in_the_states_is_found_on_sources_that_were_held_out() -> None:
    known = rows()
    scores = out_of_fold(known, 0.01)
    assert roc_auc(known.unsupported, -scores) > 0.8


def test_nothing_is_learned_from_how_sets_differ_in_labels() -> None:
    known = rows(2_000)
    # In the second set three of four are unsupported, for no reason.
    random = np.random.default_rng(1)
    mostly = np.where(known.sets == 1, random.random(len(known)) < 0.75, random.random(len(known)) < 0.1)
    states = known.states.copy()
    states[:, 3] = random.normal(size=len(known))
    fitted = fit(replace(known, states=states, unsupported=mostly), 0.01)
    scores = fitted.log_odds(replace(known, states=states))
    within = [roc_auc(mostly[known.sets == one], -scores[known.sets == one]) for one in (0, 1)]
    assert all(0.35 < area < 0.65 for area in within)


def test_terms_keep_their_direction() -> None:
    known = rows(800)
    # More novel words among the grounded: against what is known of them.
    terms = known.terms.copy()
    terms[:, TERMS.index("novel_words")] += np.where(known.unsupported, -2.0, 0.0)
    fitted = fit(replace(known, terms=terms), 0.01)
    assert {term.name: term.coefficient for term in fitted.terms}["novel_words"] == 0.0


def test_log_odds_mean_what_they_say() -> None:
    known, fresh = rows(2_000), rows(4_000, seed=9)
    readout = learn(known, ["one", "two"], layer=2, scorers=[SCORER])
    read = fresh.states @ readout.projection + readout.offsets
    found = [readout.log_odds(terms, states) for terms, states in zip(fresh.terms, read, strict=True)]
    probabilities = 1 / (1 + np.exp(-np.array(found)))
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        here = (probabilities > low) & (probabilities <= high)
        assert abs(probabilities[here].mean() - (~fresh.unsupported[here]).mean()) < 0.1
    flagged = np.array(found) < readout.bounds.flag_below
    assert 0.65 < flagged[fresh.unsupported].mean() < 0.95


def test_what_is_learned_from_weighted_labels_is_what_the_traffic_would_tell() -> None:
    traffic = rows(6_000, sets=1)
    # Unsupported sentences are four times as likely to be asked about.
    chance = np.where(traffic.unsupported, 0.8, 0.2)
    asked = np.random.default_rng(3).random(len(traffic)) < chance
    weighted = replace(traffic.where(asked), weights=1 / chance[asked])
    weighted = replace(weighted, weights=weighted.weights / weighted.weights.mean())
    told, plain = (learn(one, ["one"], layer=2, scorers=[SCORER]) for one in (weighted, traffic.where(asked)))
    whole = learn(traffic, ["one"], layer=2, scorers=[SCORER])
    assert abs(told.bounds.flag_below - whole.bounds.flag_below) < 0.35
    assert plain.bounds.flag_below < whole.bounds.flag_below - 0.7
    fitted, odds = fit(weighted, 0.01), fit(traffic, 0.01).log_odds(traffic)
    assert abs(float((fitted.log_odds(traffic) - odds).mean())) < 0.2


def test_platt_scales_and_shifts() -> None:
    random = np.random.default_rng(0)
    odds = random.normal(size=4_000) * 2
    grounded = random.random(4_000) < 1 / (1 + np.exp(-odds))
    slope, shift = platt(odds * 5 + 3, grounded, np.ones(4_000))
    assert slope == pytest.approx(0.2, rel=0.15)
    assert shift == pytest.approx(-0.6, abs=0.2)


def test_a_readout_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    readout = learn(rows(), ["one", "two"], layer=2, scorers=[SCORER])
    path = tmp_path / "own.safetensors"
    readout.save(path)
    again = load_readout(path)
    assert (again.layer, again.terms, again.scorers, again.bounds) == (2, readout.terms, (SCORER,), readout.bounds)
    assert again.provenance == readout.provenance
    assert again.provenance["sets"]["one"]["sentences"] == 300
    assert again.digest == readout.digest == load_readout(path).digest
    assert replace(again, intercept=again.intercept + 1).digest != again.digest
    detector = readout_from(path)
    assert (detector.name, detector.version) == ("readout", f"readout-{again.digest}")
    detector.require_admission(SCORER)
    with pytest.raises(ModelUnsupported, match="was fitted to the scores of tiny@01234567 float32 plain-1"):
        detector.require_admission(replace(SCORER, revision="9"))


@pytest.mark.parametrize(
    ("few", "told"),
    [
        (rows(150), "150 labelled sentences of 50 sources"),
        (replace(rows(), sources=np.zeros(600, dtype=np.int64)), "600 labelled sentences of 1 sources"),
        (replace(rows(), unsupported=np.zeros(600, dtype=bool)), "0 of them unsupported"),
        (replace(rows(), unsupported=np.ones(600, dtype=bool)), "600 of them unsupported"),
    ],
)
def test_too_little_to_learn_from_is_refused(few: Rows, told: str) -> None:
    with pytest.raises(InputError, match=told):
        learn(few, ["one", "two"], layer=2, scorers=[SCORER])


def test_a_file_that_is_no_readout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    with pytest.raises(DetectorError, match="no such file; `gasp train` writes one"):
        load_readout(path)
    learn(rows(), ["one", "two"], layer=2, scorers=[SCORER]).save(path)
    whole = path.read_bytes()
    for spoilt in (b"", b"text", whole[: len(whole) // 2], whole.replace(b"projection", b"projectiom")):
        path.write_bytes(spoilt)
        with pytest.raises(DetectorError, match="is no readout that this version reads"):
            load_readout(path)
    path.write_bytes(b"0" * (MAX_BYTES + 1))
    with pytest.raises(DetectorError, match="too large"):
        load_readout(path)


@pytest.mark.parametrize("name", ["projection", "offsets", "weights"])
@pytest.mark.parametrize("spoil", [np.full((3,), np.nan, dtype=np.float32), np.ones((7, 5, 2), dtype=np.float32)])
def test_numbers_that_do_not_fit_are_refused(name: str, spoil: np.ndarray, tmp_path: Path) -> None:
    readout = learn(rows(), ["one", "two"], layer=2, scorers=[SCORER])
    path = tmp_path / "own.safetensors"
    arrays = {"projection": readout.projection, "offsets": readout.offsets, "weights": readout.weights}
    header = {FORM: readout._header()}
    save_file({key: value.astype(np.float32) for key, value in (arrays | {name: spoil}).items()}, path, metadata=header)
    with pytest.raises(DetectorError, match="is no readout"):
        load_readout(path)
