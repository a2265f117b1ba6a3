"""The detectors by name. Another one is one entry more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gasp_core.errors import InputError
from gasp_core.evaluation.detector import (
    Detector,
    Evidence,
    Fit,
    Need,
    Reading,
    Training,
    by_leave_one_out,
    by_text,
    by_two_passes,
)
from gasp_core.evaluation.directed import directed_logistic, directed_sum
from gasp_core.evaluation.learning import boosted_trees, standardised_sum
from gasp_core.fused import Fused, fused_features, shipped_fused
from gasp_core.grounding import Exchange, SentenceGrounding
from gasp_core.text.lexical import novelties
from gasp_core.tpa.features import tpa_features

# Every other detector is compared with these: the papers' signal, and what costs no model at all.
GAP = "gap"
LEXICAL = "lexical"


def _gap(one: SentenceGrounding) -> list[float | None]:
    return [one.gap]


def _jsd(one: SentenceGrounding) -> list[float | None]:
    return [one.jsd_no_context]


def _two_pass(one: SentenceGrounding) -> list[float | None]:
    return [one.gap, one.jsd_no_context]


def _perplexity(one: SentenceGrounding) -> list[float | None]:
    return [None if one.surprisal is None else -one.surprisal]


def _max_drop(one: SentenceGrounding) -> list[float | None]:
    return [max((drop.drop for drop in one.drops), default=None)]


def _four(one: SentenceGrounding) -> list[float | None]:
    if not one.drops:
        return []
    return [*_two_pass(one), *_max_drop(one), max(drop.jsd for drop in one.drops)]


def _all(one: SentenceGrounding) -> list[float | None]:
    if not one.drops:
        return []
    drops = sorted((drop.drop for drop in one.drops), reverse=True)
    top = drops[:2]
    return [*_four(one), sum(drops) / len(drops), sum(top) / len(top), one.surprisal, one.n_tokens]


def _length(_exchange: Exchange, texts: Sequence[str]) -> list[float]:
    return [-float(len(text.split())) for text in texts]


def _lexical(exchange: Exchange, texts: Sequence[str]) -> list[float]:
    return [-novelty.words for novelty in novelties(exchange, texts)]


def _fused(evidence: Evidence) -> list[Reading]:
    if evidence.tokens is None:
        raise ValueError("two passes are needed")
    grounding = evidence.tokens.grounding
    return [
        Reading(features) if features is not None else Reading(reason=sentence.skip_reason)
        for sentence, features in zip(grounding.sentences, fused_features(evidence.exchange, grounding), strict=True)
    ]


def _as_shipped(fused: Fused) -> Fit:
    return lambda _readings, _unsupported: lambda readings: np.array([fused.log_odds(row) for row in readings])


def _tpa(evidence: Evidence) -> list[Reading]:
    if evidence.attributed is None:
        raise ValueError("the sources of tokens are needed")
    features = tpa_features(evidence.attributed).tolist()
    return [
        Reading(reason=skip) if skip else Reading(tuple(row))
        for skip, row in zip(evidence.attributed.skips, features, strict=True)
    ]


_SHIPPED = shipped_fused()

DETECTORS = {
    detector.name: detector
    for detector in (
        Detector(GAP, Need.TWO_PASS, by_two_passes(_gap)),
        Detector("jsd", Need.TWO_PASS, by_two_passes(_jsd)),
        Detector("two-pass", Need.TWO_PASS, by_two_passes(_two_pass), standardised_sum, Training.SAMPLE),
        Detector("perplexity", Need.TWO_PASS, by_two_passes(_perplexity)),
        Detector("length", Need.TEXT, by_text(_length)),
        Detector(LEXICAL, Need.TEXT, by_text(_lexical)),
        Detector("max-drop", Need.LEAVE_ONE_OUT, by_leave_one_out(_max_drop)),
        Detector("standardised-sum", Need.LEAVE_ONE_OUT, by_leave_one_out(_four), standardised_sum, Training.SAMPLE),
        Detector("trained", Need.LEAVE_ONE_OUT, by_leave_one_out(_all), boosted_trees, Training.LABELS),
        Detector("fused", Need.TWO_PASS, _fused, _as_shipped(_SHIPPED), scorers=_SHIPPED.scorers),
        Detector("fused-cv", Need.TWO_PASS, _fused, directed_logistic, Training.LABELS),
        Detector("fused-free", Need.TWO_PASS, _fused, directed_sum, Training.SAMPLE),
        Detector("tpa", Need.SOURCES, _tpa, boosted_trees, Training.LABELS),
    )
}


def detectors_named(names: Sequence[str]) -> list[Detector]:
    """The detectors of these names, each once. Raises InputError for a name that there is none of."""
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in DETECTORS:
            raise InputError("--detector", 0, f"no detector {name!r}; there are {', '.join(DETECTORS)}")
    return [DETECTORS[name] for name in wanted]
