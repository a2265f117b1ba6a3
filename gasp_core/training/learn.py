"""From rows to a readout: how strong a ridge, what its log-odds mean, where to cut, and how well it does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.detector import Bounds
from gasp_core.detectors.readout.readout import Readout
from gasp_core.errors import InputError
from gasp_core.gasp_rag.metrics import roc_auc
from gasp_core.identity import ScorerIdentity
from gasp_core.training.fit import FOLDS, RIDGES, fit, out_of_fold, platt
from gasp_core.training.rows import Rows

# What the first bound finds of what is unsupported, on sources that were held out.
RECALL = 0.8
# Fewer say nothing of how well it does.
MIN_SENTENCES, MIN_UNSUPPORTED, MIN_SOURCES = 200, 40, 20


def learn(rows: Rows, names: Sequence[str], *, layer: int, scorers: Sequence[ScorerIdentity], seed: int = 0) -> Readout:
    """Learn a readout from all rows; ``names`` are those of the sets.

    The ridge is the one whose scores rank best on held-out sources, on the mean over the sets. The log-odds are
    calibrated, and the bound is chosen, on held-out sources, too. Raises InputError if there is too little.
    """
    _require_enough(rows, names)
    ridge, held_out = max(
        ((ridge, out_of_fold(rows, ridge, seed)) for ridge in RIDGES), key=lambda found: _mean_area(rows, found[1])
    )
    slope, shift = platt(held_out, ~rows.unsupported, rows.weights)
    fitted = fit(rows, ridge).calibrated(slope, shift)
    bound = round(_bound(slope * held_out[rows.unsupported] + shift, rows.weights[rows.unsupported]), 2)
    return Readout(
        layer=layer,
        projection=fitted.projection,
        offsets=fitted.offsets,
        weights=fitted.weights,
        terms=fitted.terms,
        intercept=fitted.intercept,
        scorers=tuple(scorers),
        bounds=Bounds(bound, bound),
        provenance=_provenance(rows, names, ridge, held_out, seed),
    )


def _bound(scores: Floats, weights: Floats) -> float:
    """What RECALL of the weight of these scores, which are of unsupported sentences, lies below."""
    return float(np.quantile(scores, RECALL, weights=weights, method="inverted_cdf"))


def _require_enough(rows: Rows, names: Sequence[str]) -> None:
    unsupported, sources = int(rows.unsupported.sum()), len(np.unique(rows.sources))
    grounded = len(rows) - unsupported
    if len(rows) < MIN_SENTENCES or min(unsupported, grounded) < MIN_UNSUPPORTED or sources < MIN_SOURCES:
        raise InputError(
            ", ".join(names),
            0,
            f"{len(rows)} labelled sentences of {sources} sources, {unsupported} of them unsupported, are too few to"
            f" learn from: it takes {MIN_SENTENCES} of {MIN_SOURCES} sources, {MIN_UNSUPPORTED} unsupported and as"
            " many grounded",
        )


def _mean_area(rows: Rows, scores: Floats) -> float:
    """Over the sets; over all rows together if each set has one label only."""
    known = [area for area in _areas(rows, scores, rows.sets.max() + 1) if area is not None]
    return float(np.mean(known)) if known else float(roc_auc(rows.unsupported, -scores))


def _areas(rows: Rows, scores: Floats, count: int) -> list[float | None]:
    """The area under the ROC curve in each of ``count`` sets; None where a set has one label only, or no sentence."""
    return [_area(rows.unsupported[rows.sets == one], scores[rows.sets == one]) for one in range(count)]


def _area(unsupported: Flags, scores: Floats) -> float | None:
    return float(roc_auc(unsupported, -scores)) if 0 < unsupported.sum() < len(unsupported) else None


def _provenance(rows: Rows, names: Sequence[str], ridge: float, held_out: Floats, seed: int) -> dict[str, Any]:
    areas = _areas(rows, held_out, len(names))
    return {
        "sets": {
            name: {
                "sentences": int((rows.sets == number).sum()),
                "unsupported": int(rows.unsupported[rows.sets == number].sum()),
                "sources": len(np.unique(rows.sources[rows.sets == number])),
                "auc_out_of_fold": None if area is None else round(area, 4),
            }
            for (number, name), area in zip(enumerate(names), areas, strict=True)
        },
        "folds": FOLDS,
        "ridge": ridge,
        "seed": seed,
        "date": datetime.now(UTC).date().isoformat(),
    }
