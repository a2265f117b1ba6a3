"""The sentences of the refit benchmark: scored answers with human labels, and which of them people are asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from worker.rules.calibration.labels import Booleans, Codes, Floats
from worker.rules.refit.correction import TERMS
from worker.rules.refit.lesson import TaughtSentence
from worker.rules.selection import SamplingBudget, expected_weights, selection_probabilities

# Of the sources, those that are kept to measure on.
HELD_OUT = 0.3
# Of the sentences, those that are flagged; of the labels, those of flagged sentences.
FLAGGED, LABELS_OF_FLAGGED = 0.15, 0.6
# A reviewed part of the traffic of this many times the labels that are wanted is drawn from.
SUPPLY = 1.5


class Asked(StrEnum):
    """How sentences come to be labelled."""

    AT_RANDOM = "at random"
    BY_SCORE = "by score"
    BY_SCORE_UNKNOWN = "by score, taken as random"


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """The labelled sentences of one set, flat: ``terms`` (n, T) in the order of TERMS, the rest (n,).

    ``scores`` are those of one detector; ``answers`` and ``sources`` count from 0.
    """

    name: str
    detector: str
    scores: Floats
    terms: Floats
    unsupported: Booleans
    answers: Codes
    sources: Codes

    def taught(self, places: Codes, probabilities: Floats) -> list[TaughtSentence]:
        """Those sentences as labels that come one after the other."""
        return [
            TaughtSentence(
                float(self.scores[place]),
                tuple(self.terms[place].tolist()),
                bool(self.unsupported[place]),
                float(probability),
                int(self.answers[place]),
                float(moment),
            )
            for moment, (place, probability) in enumerate(zip(places, probabilities, strict=True))
        ]


def made_up(name: str) -> list[Sentences]:
    """Sentences of a set that fits and of one whose first term is missing in the score, to try the script."""
    rng = np.random.default_rng(7)
    count = 1_500
    terms = rng.normal(size=(count, len(TERMS)))
    scores = 1.5 + 1.5 * rng.normal(size=count)
    answers = np.repeat(np.arange(count // 5), 5)
    return [
        Sentences(
            name,
            detector,
            scores,
            terms,
            rng.random(count) > 1 / (1 + np.exp(-(scores + missing * terms[:, 0]))),
            answers,
            answers // 2,
        )
        for detector, missing in (("fits", 0.0), ("lacks", 1.0))
    ]


def halves(sentences: Sentences, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """The places of what reviewers may be asked about, and of what is kept to measure on: whole sources."""
    sources = rng.permutation(int(sentences.sources.max()) + 1)
    held_out = np.isin(sentences.sources, sources[: max(1, int(HELD_OUT * len(sources)))])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def asked(
    sentences: Sentences, pool: Codes, count: int, how: Asked, rng: np.random.Generator
) -> tuple[Codes, Floats] | None:
    """The places of so many labels and the probability of each, from answers in random order; None if they give fewer.

    By score they are chosen as worker.rules.selection does, with a budget for flagged sentences and one for the others.
    """
    probability = _by_score(sentences, pool, count) if how is not Asked.AT_RANDOM else None
    places: list[int] = []
    probabilities: list[float] = []
    of_pool = sentences.answers[pool]
    for answer in rng.permutation(np.unique(of_pool)):
        inside = pool[of_pool == answer]
        chances = np.ones(len(inside)) if probability is None else probability(sentences.scores[inside])
        hit = rng.random() < chances
        places.extend(inside[hit].tolist())
        probabilities.extend(chances[hit].tolist())
        if len(places) >= count:
            kept = np.ones(count) if how is Asked.BY_SCORE_UNKNOWN else np.array(probabilities[:count])
            return np.array(places[:count]), kept
    return None


def _by_score(sentences: Sentences, pool: Codes, count: int) -> Callable[[Floats], Floats]:
    """How likely each sentence of an answer is asked about, where the pool is the traffic of a usual day."""
    scores = sentences.scores[pool]
    flag_below, spread = float(np.quantile(scores, FLAGGED)), float(scores.std())
    expected_flagged, expected_sampled = expected_weights(scores, flag_below, spread)
    wanted = SUPPLY * count
    flagged, sampled = (max(1, round(wanted * share)) for share in (LABELS_OF_FLAGGED, 1 - LABELS_OF_FLAGGED))
    budget = SamplingBudget(flagged, 0, expected_flagged, sampled, 0, expected_sampled, spread)

    def probability(of_answer: Floats) -> Floats:
        chances = selection_probabilities(of_answer.tolist(), flag_below, budget)
        return np.array([chance or 0.0 for chance in chances])

    return probability
