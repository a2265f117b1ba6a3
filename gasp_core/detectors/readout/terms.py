"""The numbers beside the states that a readout may take: those of fused, and others of the texts and two passes."""

from __future__ import annotations

from collections.abc import Sequence

from gasp_core.detectors.fused_model import DIRECTIONS, fused_features
from gasp_core.errors import DetectorError
from gasp_core.grounding import AnswerGrounding, Exchange, SentenceGrounding

SURPRISAL = "surprisal"
TERMS = (*DIRECTIONS, SURPRISAL)


def sentence_terms(
    exchange: Exchange, grounding: AnswerGrounding, names: Sequence[str] = TERMS
) -> list[tuple[float, ...] | None]:
    """The terms of each sentence in the order of ``names``; None where it has no score.

    Raises DetectorError for a name that is none of TERMS.
    """
    if unknown := set(names) - set(TERMS):
        raise DetectorError("readout", f"no term {', '.join(sorted(unknown))}; there are {', '.join(TERMS)}")
    places = [TERMS.index(name) for name in names]
    rows = zip(grounding.sentences, fused_features(exchange, grounding), strict=True)
    return [
        None if fused is None else tuple(_all(sentence, fused)[place] for place in places) for sentence, fused in rows
    ]


def _all(sentence: SentenceGrounding, fused: tuple[float, ...]) -> tuple[float, ...]:
    return (*fused, sentence.surprisal or 0.0)
