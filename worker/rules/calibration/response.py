"""How likely an asked sentence was to be answered, by its score and by when it was asked about.

People read in an order of their own, and not everything. Within a stratum of score and time what was answered is taken
to be like what was not; from one stratum to another it is not. A score at which nobody ever answers is silent: no
weight can make up for it, and its sentences are left to bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from worker.rules.calibration.labels import (
    Booleans,
    Codes,
    Floats,
    LabelledSentence,
    Sample,
    Silent,
    Unanswered,
    sample_of,
)

# Strata of score, and of time within them: so many, or as many as leave each of them so many sentences.
SCORE_STRATA = 10
TIME_STRATA = 4
LEAST_ASKED = 30
# With fewer answers, or if less than this part answered, a stratum tells nothing of its own.
LEAST_ANSWERED = 5
LEAST_RATE = 0.1


@dataclass(frozen=True, slots=True)
class Response:
    """The share of what was asked about that was answered: of all, and in the stratum of scores with the least.

    ``silent`` is the share that lies where nobody answers. All count by what they stand for, in [0, 1].
    """

    rate: float
    lowest: float
    silent: float


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """All that was asked about, answered or not, (n,); the answered come first, in the order of their sample."""

    scores: Floats
    weights: Floats
    times: Floats
    answered: Booleans


def weighted_by_response(
    labelled: Sequence[LabelledSentence], unanswered: Sequence[Unanswered]
) -> tuple[Sample, Response]:
    """The labels with weights of one over the chance that they were asked about *and* answered; how many answered."""
    sample = sample_of(labelled)
    if not len(sample) or not unanswered:
        return sample, Response(1.0, 1.0, 0.0)
    asked = _together(sample, labelled, unanswered)
    strata = _cut(asked.scores, SCORE_STRATA)
    factors, silent, rates = np.ones(len(asked.scores)), np.zeros(len(asked.scores), dtype=np.bool_), []
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        rates.append(_rate(asked, inside))
        if _tells(asked, inside):
            factors[inside] = _factors(asked, inside)
        else:
            silent[inside] = ~asked.answered[inside]
    weights = (asked.weights * factors)[asked.answered]
    mean = weights.mean()
    of_silent = Silent(asked.scores[silent], asked.weights[silent] / mean)
    everything = asked.weights.sum()
    response = Response(
        float(asked.weights[asked.answered].sum() / everything),
        min(rates),
        float(asked.weights[silent].sum() / everything),
    )
    return replace(sample, weights=weights / mean, silent=of_silent), response


def _together(sample: Sample, labelled: Sequence[LabelledSentence], unanswered: Sequence[Unanswered]) -> _Asked:
    # The weights of a sample have mean 1, so its labels are brought back to what they stand for.
    unit = float(np.mean([1 / one.probability for one in labelled]))
    others = np.array([(one.score, 1 / one.probability, one.asked_at) for one in unanswered], dtype=np.float64)
    return _Asked(
        np.concatenate([sample.scores, others[:, 0]]),
        np.concatenate([sample.weights * unit, others[:, 1]]),
        np.concatenate([sample.times, others[:, 2]]),
        np.arange(len(sample) + len(others)) < len(sample),
    )


def _cut(values: Floats, most: int) -> Codes:
    """The stratum of each value: up to ``most`` of them, of equal size where values differ."""
    count = max(1, min(most, len(values) // LEAST_ASKED))
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1]))
    return np.asarray(np.searchsorted(edges, values, side="right"), dtype=np.intp)


def _factors(asked: _Asked, inside: Codes) -> Floats:
    """What the weight of each sentence in a stratum of scores is multiplied by, were it answered.

    Times at which enough answered speak for themselves; the others together for one another, or, if even they tell
    nothing, through those that do.
    """
    times = _cut(asked.times[inside], TIME_STRATA)
    parts = [inside[times == time] for time in np.unique(times)]
    telling = [part for part in parts if _tells(asked, part)]
    rest = np.concatenate([part for part in parts if not _tells(asked, part)] or [inside[:0]])
    if len(rest) and _tells(asked, rest):
        telling, rest = [*telling, rest], rest[:0]
    if not telling:
        return np.full(len(inside), 1 / _rate(asked, inside))
    factors = np.ones(len(asked.scores))
    for part in telling:
        factors[part] = 1 / _rate(asked, part)
    spoken_for = float(sum(asked.weights[part].sum() for part in telling))
    # What nobody answered of the rest is divided among the others of this stratum.
    unheard = float(asked.weights[rest][~asked.answered[rest]].sum())
    for part in telling:
        factors[part] *= 1 + unheard / spoken_for
    return np.asarray(factors[inside], dtype=np.float64)


def _tells(asked: _Asked, part: Codes) -> bool:
    """Whether enough of it was answered to speak for the rest of it."""
    return bool(asked.answered[part].sum() >= LEAST_ANSWERED and _rate(asked, part) >= LEAST_RATE)


def _rate(asked: _Asked, part: Codes) -> float:
    """The share of it that was answered."""
    weights = asked.weights[part]
    return float(weights[asked.answered[part]].sum() / weights.sum()) if len(part) else 0.0
