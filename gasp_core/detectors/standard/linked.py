"""The terms of a model on another scorer's scale.

A value that lies as many deviations from that scorer's mean over the reference set as another one from the packaged
scorer's counts as much. So the scale of the scores, and what a bound means, stay those of the packaged scorer.
"""

from __future__ import annotations

from dataclasses import replace

from gasp_core.detectors.detector import Figures
from gasp_core.detectors.fused_model import Fused, Term
from gasp_core.detectors.standard.reference import PACKAGED_FIGURES

# A term that hardly differs from sentence to sentence says nothing.
SMALLEST_DEVIATION = 1e-6


def linked(fused: Fused, figures: Figures) -> Fused:
    """The model for a scorer with these figures. Terms without figures are of the texts, the same for all scorers."""
    return replace(fused, terms=tuple(_linked(term, figures) for term in fused.terms))


def _linked(term: Term, figures: Figures) -> Term:
    if term.name not in figures:
        return term
    mean, deviation = figures[term.name]
    known_mean, known_deviation = PACKAGED_FIGURES[term.name]
    if deviation < SMALLEST_DEVIATION:
        return replace(term, coefficient=0.0)
    scale = deviation / known_deviation
    return replace(term, mean=mean + (term.mean - known_mean) * scale, deviation=term.deviation * scale)
