"""The numbers beside the states that a readout may take: those of fused, and others of the texts and two passes."""

from __future__ import annotations

from collections.abc import Sequence

from gasp_core.detectors.fused_model import DIRECTIONS, fused_features
from gasp_core.errors import DetectorError
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.text.agreement import agreements

COVERAGE = "coverage"
TERMS = (*DIRECTIONS, COVERAGE)


def sentence_terms(
    exchange: Exchange,
    grounding: AnswerGrounding,
    names: Sequence[str] = TERMS,
    known: Sequence[tuple[float, ...] | None] | None = None,
) -> list[tuple[float, ...] | None]:
    """The terms of each sentence in the order of ``names``; None where it has no score.

    ``known`` has them in the order of TERMS, where somebody has read them already. Raises DetectorError for a name that
    is none of TERMS.
    """
    if unknown := set(names) - set(TERMS):
        raise DetectorError("readout", f"no term {', '.join(sorted(unknown))}; there are {', '.join(TERMS)}")
    places = [TERMS.index(name) for name in names]
    rows = _read(exchange, grounding) if known is None else known
    return [None if values is None else tuple(values[place] for place in places) for values in rows]


def _read(exchange: Exchange, grounding: AnswerGrounding) -> list[tuple[float, ...] | None]:
    """In the order of TERMS."""
    texts = [exchange.answer[one.sentence.start : one.sentence.end] for one in grounding.sentences]
    rows = zip(fused_features(exchange, grounding), agreements(exchange, texts), strict=True)
    return [None if fused is None else (*fused, agreement.coverage) for fused, agreement in rows]
