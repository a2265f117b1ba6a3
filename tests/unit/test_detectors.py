"""The detectors: what each is stored under, what it may read, how it is named, and which one a worker judges by."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from gasp_core.detectors.detector import Bounds, Detector
from gasp_core.detectors.fused import FUSED, FUSED_FREE
from gasp_core.detectors.fused_model import shipped_fused
from gasp_core.detectors.leave_one_out import MAX_DROP
from gasp_core.detectors.readout.detector import READOUT, shipped_readout
from gasp_core.detectors.registry import AUTO, DETECTORS, best_for, detector_named
from gasp_core.detectors.two_pass import GAP, JSD
from gasp_core.errors import DetectorError
from gasp_core.identity import ScorerIdentity
from worker.errors import SettingsError
from worker.settings.detectors import DetectorChoice, choose_detector

KNOWN = shipped_fused().scorers[0]
OTHER = ScorerIdentity("Other-7B", "0123456789abcdef", "bfloat16", "plain-1", "gasp-3")
STORED = {name: detector for name, detector in DETECTORS.items() if detector.version is not None}


# What is stored under a detector


@pytest.mark.parametrize(
    ("name", "method", "label"),
    [
        ("gap", "gasp-3", "Other-7B@01234567 bfloat16 plain-1 gasp-3"),
        ("jsd", "gasp-3 jsd", "Other-7B@01234567 bfloat16 plain-1 gasp-3 jsd"),
        ("fused", "gasp-3 fused-2", "Other-7B@01234567 bfloat16 plain-1 gasp-3 fused-2"),
        ("fused-free", "gasp-3 fused-free-1", "Other-7B@01234567 bfloat16 plain-1 gasp-3 fused-free-1"),
        ("readout", "gasp-3 readout-1", "Other-7B@01234567 bfloat16 plain-1 gasp-3 readout-1"),
    ],
)
def test_the_identity_that_scores_are_stored_under_is_that_of_this_release(name: str, method: str, label: str) -> None:
    identity = DETECTORS[name].judging(OTHER)
    assert identity == ScorerIdentity("Other-7B", "0123456789abcdef", "bfloat16", "plain-1", method)
    assert identity.label == label


def test_the_scorers_that_fused_and_readout_read_are_those_that_they_were_learned_from() -> None:
    known = {
        "SmolLM2-135M-Instruct@e7a89421 bfloat16 plain-1 gasp-3",
        "SmolLM2-135M-Instruct@e7a89421 bfloat16 plain-1 gasp-3-masked",
        "SmolLM2-135M-Instruct@e7a89421 float32 plain-1 gasp-3",
        "SmolLM2-135M-Instruct@e7a89421 float32 plain-1 gasp-3-masked",
    }
    assert {one.label for one in shipped_fused().scorers} == known
    assert {one.label for one in shipped_readout().scorers} == known


def test_the_bounds_to_begin_with_are_those_of_the_documentation() -> None:
    assert {name: detector.bounds for name, detector in DETECTORS.items() if detector.bounds is not None} == {
        "gap": Bounds(0.15, 0.15),
        "jsd": Bounds(0.06, 0.06),
        "fused": Bounds(2.0, 2.0),
        "fused-free": Bounds(2.0, 2.0),
        "readout": shipped_readout().bounds,
    }


def test_a_detector_without_a_version_or_bounds_says_so() -> None:
    with pytest.raises(DetectorError, match="nothing is stored by max-drop"):
        MAX_DROP.judging(OTHER)
    with pytest.raises(DetectorError, match="nobody has chosen bounds for the scores of max-drop"):
        MAX_DROP.require_bounds()


# Names


def test_every_detector_is_found_by_its_name_and_a_feature_of_gasp_rag_by_gasp_rags() -> None:
    assert all(detector_named(name) is detector for name, detector in DETECTORS.items())
    theirs = ("max_drop", "gap", "mean_drop", "top2_drop", "max_jsd", "jsd_noctx")
    ours = ("max-drop", "gap", "mean-drop", "top2-drop", "max-jsd", "jsd")
    assert [detector_named(name).name for name in theirs] == list(ours)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(DetectorError, match=r"^no detector 'magic'; there are gap, jsd, .*, tpa$"):
        detector_named("magic")


def test_looking_detectors_up_reads_no_file_and_imports_neither_numpy_nor_torch() -> None:
    program = (
        "import sys\n"
        "from gasp_core.detectors.registry import DETECTORS\n"
        "from gasp_core.detectors.fused_model import shipped_fused\n"
        "from gasp_core.detectors.readout.detector import shipped_readout as readout\n"
        "read = shipped_fused.cache_info().currsize + readout.cache_info().currsize\n"
        "print(read, sorted({'torch', 'numpy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("0 []\n", "")


# What a worker judges by


def test_the_best_detector_is_readout_where_it_was_learned_from_the_scorer_and_equal_weights_elsewhere() -> None:
    assert best_for(KNOWN) is choose_detector("auto", KNOWN) is READOUT
    assert best_for(OTHER) is choose_detector("auto", OTHER) is FUSED_FREE


def test_what_was_asked_for_is_taken() -> None:
    assert choose_detector("gap", KNOWN) is GAP
    assert choose_detector("jsd", OTHER) is JSD
    assert choose_detector("fused", KNOWN) is choose_detector("fused", OTHER) is FUSED
    assert choose_detector("fused-free", KNOWN) is FUSED_FREE
    assert choose_detector("readout", KNOWN) is READOUT


def test_a_readout_is_refused_for_another_scorer_with_what_to_do() -> None:
    told = r"^GASP_DETECTOR: .*SmolLM2.*; fused-free, fused, gap and jsd take any model$"
    with pytest.raises(SettingsError, match=told):
        choose_detector("readout", OTHER)


@pytest.mark.parametrize(
    ("scorer", "newest", "found"),
    [
        (KNOWN, None, READOUT),
        (KNOWN, "gasp-3 readout-1", READOUT),
        (OTHER, None, FUSED_FREE),
        (OTHER, "gasp-3 fused-free-1-ref-1", FUSED_FREE),
        (OTHER, "gasp-3 context-64 fused-free-9-ref-8", FUSED_FREE),
        # What a release brings does not stop a worker that is upgraded.
        # Another release, and other limits, are no other detector.
        (KNOWN, "gasp-2 fused-1", FUSED),
        (KNOWN, "gasp-3 context-64 fused-9", FUSED),
        (OTHER, "gasp-2", GAP),
        (OTHER, "gasp-2-masked", GAP),
        (OTHER, "gasp-3 context-64 answer-12", GAP),
    ],
)
def test_auto_goes_on_with_the_detector_of_the_newest_verdict(
    scorer: ScorerIdentity, newest: str | None, found: Detector
) -> None:
    assert choose_detector("auto", scorer, newest) is found


@pytest.mark.parametrize(
    ("scorer", "newest", "said"),
    [
        (
            OTHER,
            "gasp-2 fused-1",
            r"would now judge by fused-free, .* Other-7B .* by fused: set GASP_DETECTOR=fused .*=fused-free",
        ),
        (OTHER, "gasp-3 readout-1", r"would now judge by fused-free, .* by readout: .* SmolLM2-135M.*=fused-free"),
        (
            OTHER,
            "gasp-3 jsd",
            r"would now judge by fused-free, .* by jsd: set GASP_DETECTOR=jsd .*, or set GASP_DETECTOR=fused-free",
        ),
        (
            KNOWN,
            "gasp-3",
            r"would now judge by readout, .* by gap: set GASP_DETECTOR=gap .*, or .* GASP_DETECTOR=readout",
        ),
        (KNOWN, "gasp-3 context-64", "would now judge by readout"),
    ],
)
def test_auto_never_changes_the_detector_of_a_database_in_silence(
    scorer: ScorerIdentity, newest: str, said: str
) -> None:
    with pytest.raises(SettingsError, match=f"^GASP_DETECTOR: auto {said}"):
        choose_detector("auto", scorer, newest)
    assert choose_detector("gap", scorer, newest) is GAP


def test_the_setting_offers_every_detector_that_can_be_stored_and_cut() -> None:
    assert set(get_args(DetectorChoice)) == {AUTO, *STORED}
    assert all(detector.bounds is not None for detector in STORED.values())
    assert len({detector.judging(KNOWN).label for detector in STORED.values()}) == len(STORED)
