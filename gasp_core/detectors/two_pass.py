"""Detectors that read the answer with the whole context and with none."""

from __future__ import annotations

from gasp_core.detectors.detector import Bounds, Detector, Learner, Need, Training
from gasp_core.detectors.learning import standardised_sum
from gasp_core.detectors.sentences import by_two_passes
from gasp_core.grounding import SentenceGrounding


def gap_and_jsd(one: SentenceGrounding) -> list[float | None]:
    """Both features of two passes, in nats a token."""
    return [one.gap, one.jsd_no_context]


def _gap(one: SentenceGrounding) -> list[float | None]:
    return [one.gap]


def _jsd(one: SentenceGrounding) -> list[float | None]:
    return [one.jsd_no_context]


def _log_likelihood(one: SentenceGrounding) -> list[float | None]:
    return [None if one.surprisal is None else -one.surprisal]


# The gap was what every verdict went by before there was a choice: its identity is the scorer's own.
GAP = Detector("gap", Need.TWO_PASS, by_two_passes(_gap), version="", bounds=Bounds(0.15, 0.15))
JSD = Detector("jsd", Need.TWO_PASS, by_two_passes(_jsd), version="jsd", bounds=Bounds(0.06, 0.06))
TWO_PASS = Detector(
    "two-pass", Need.TWO_PASS, by_two_passes(gap_and_jsd), learner=Learner(Training.SAMPLE, standardised_sum)
)
PERPLEXITY = Detector("perplexity", Need.TWO_PASS, by_two_passes(_log_likelihood))
