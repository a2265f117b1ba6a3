"""The detectors by name. Another one is one entry more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gasp_core.detectors.attractor import (
    ATTRACTOR,
    ATTRACTOR_CONVERGENCE,
    ATTRACTOR_DIMENSION,
    ATTRACTOR_MOVEMENT,
)
from gasp_core.detectors.detector import Detector
from gasp_core.detectors.fused import FUSED, FUSED_CROSS_VALIDATED, FUSED_FREE
from gasp_core.detectors.leave_one_out import MAX_DROP, MAX_JSD, MEAN_DROP, STANDARDISED_SUM, TOP2_DROP, TRAINED
from gasp_core.detectors.readout.detector import READOUT, readout_from
from gasp_core.detectors.readout.readout import READOUT_SUFFIX
from gasp_core.detectors.text import LENGTH, LEXICAL
from gasp_core.detectors.tpa import TPA
from gasp_core.detectors.two_pass import GAP, JSD, PERPLEXITY, TWO_PASS
from gasp_core.errors import DetectorError
from gasp_core.identity import ScorerIdentity

# The name that stands for the best detector that the scorer admits.
AUTO = "auto"

DETECTORS = {
    detector.name: detector
    for detector in (
        *(GAP, JSD, TWO_PASS, PERPLEXITY, LENGTH, LEXICAL),
        *(MAX_DROP, MEAN_DROP, TOP2_DROP, MAX_JSD, STANDARDISED_SUM, TRAINED),
        *(FUSED, FUSED_CROSS_VALIDATED, FUSED_FREE, READOUT),
        *(ATTRACTOR_MOVEMENT, ATTRACTOR_CONVERGENCE, ATTRACTOR_DIMENSION, ATTRACTOR, TPA),
    )
}

# How gasp-rag spells the features that are detectors here.
GASP_RAG_SPELLINGS = {
    "max_drop": MAX_DROP.name,
    "mean_drop": MEAN_DROP.name,
    "top2_drop": TOP2_DROP.name,
    "max_jsd": MAX_JSD.name,
    "jsd_noctx": JSD.name,
}


def detector_named(name: str) -> Detector:
    """The detector of a name, in gasp-rag's spelling, too, or of a readout's file. Raises DetectorError if none is."""
    if name.endswith(READOUT_SUFFIX):
        return readout_from(Path(name))
    known = GASP_RAG_SPELLINGS.get(name, name)
    if known not in DETECTORS:
        raise DetectorError(name, f"no detector {name!r}; there are {', '.join(DETECTORS)}")
    return DETECTORS[known]


def detectors_named(names: Sequence[str]) -> list[Detector]:
    """The detectors of these names, each once. Raises DetectorError for a name that there is none of."""
    found = [detector_named(name) for name in names]
    return list({detector.name: detector for detector in found}.values())


def best_for(scorer: ScorerIdentity) -> Detector:
    """What the name auto stands for: the first of readout and fused that was learned from this scorer, else fused-free.

    The last is then to be standardised (``gasp_core.detectors.standard``).
    """
    return next((detector for detector in (READOUT, FUSED) if detector.is_fitted_to(scorer)), FUSED_FREE)


def judging_in(method: str) -> Detector:
    """The detector in the method of an identity that something was stored under, of whatever version; gap has no name.

    The first release stored as this one does.
    """
    stored = method.split()[-1]
    stems = {one.version.rsplit("-", 1)[0]: one for one in DETECTORS.values() if one.version}
    found = [stem for stem in stems if f"{stored}-".startswith(f"{stem}-")]
    return stems[max(found, key=len)] if found else GAP
