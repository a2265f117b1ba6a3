"""From what was found in an answer to its verdict: the detector's scores, what is kept of its terms, the threshold."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

from gasp_core.detectors.detector import AnswerEvidence, Detector
from gasp_core.detectors.readout.terms import sentence_terms
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.text.lexical import told_language_of
from worker.rules.verdict import TermValues, Threshold, Verdict, judge


def verdict_of(exchange: Exchange, grounding: AnswerGrounding, detector: Detector, threshold: Threshold) -> Verdict:
    """Judge an answer by the detector, corrected as the threshold says."""
    # Read once for both: to cut the texts up takes milliseconds.
    terms = sentence_terms(exchange, grounding)
    scores = detector.scores(AnswerEvidence.of(exchange, grounding, terms))
    verdict = judge(scores, threshold, _kept(grounding, terms))
    return replace(verdict, language=told_language_of(exchange))


def _kept(grounding: AnswerGrounding, terms: Sequence[tuple[float, ...] | None]) -> tuple[TermValues | None, ...]:
    """What a correction may read of each sentence, in the order of its TERMS; None where there is no score.

    In single precision, as they are stored, so that a correction says the same of what is stored.
    """
    return tuple(
        None if values is None or sentence.surprisal is None else _as_stored((*values, sentence.surprisal))
        for values, sentence in zip(terms, grounding.sentences, strict=True)
    )


def _as_stored(values: Sequence[float]) -> TermValues | None:
    single = tuple(array("f", values))
    return single if all(map(math.isfinite, single)) else None
