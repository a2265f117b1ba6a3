"""The model of the fused detector: one number out of two passes and the texts; its coefficients come with the package.

A sentence is suspicious if the model's distributions hardly change without the passages, if it says words, pairs of
words, names and numbers that no passage has, if its neighbours do, and if it is long. The score is the log-odds of
being grounded in a logistic model of eight terms, each with the direction that is known beforehand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Self

from gasp_core.grounding import AnswerGrounding, Exchange, SentenceGrounding
from gasp_core.identity import ScorerIdentity
from gasp_core.text.lexical import Novelty, novelties

# Raised whenever the coefficients or a term change: it is part of the identity of what a worker stores.
VERSION = "fused-2"
FILE = "fused.v2.json"
# What one deviation of any term adds to the log-odds where all count alike, fitted to ragtruth_qa_dev as the shipped
# coefficients were. The version is raised whenever these change.
EQUAL_VERSION = "fused-free-1"
EQUAL_COEFFICIENT, EQUAL_INTERCEPT = 0.36, 2.2
# A gap beyond these says no more.
LOWEST_GAP_NATS, HIGHEST_GAP_NATS = -1.0, 3.0
# In the order of the terms: 1 where more of it is more grounded, -1 where it is more suspicious.
DIRECTIONS = {
    "jsd_no_context": 1,
    "gap": 1,
    "novel_words": -1,
    "novel_pairs": -1,
    "neighbours": -1,
    "novel_names": -1,
    "novel_numbers": -1,
    "length": -1,
}


@dataclass(frozen=True, slots=True)
class Term:
    """A feature with its usual mean and deviation, and what one deviation adds to the log-odds."""

    name: str
    mean: float
    deviation: float
    coefficient: float

    def log_odds(self, value: float) -> float:
        """What the feature adds to the log-odds where it has this value."""
        return self.coefficient * (value - self.mean) / self.deviation


@dataclass(frozen=True, slots=True)
class Fused:
    """A fitted model. ``provenance`` says on what data, when and how well; ``scorers`` whose scores it may take."""

    terms: tuple[Term, ...]
    intercept: float
    scorers: tuple[ScorerIdentity, ...]
    provenance: dict[str, Any]

    def log_odds(self, features: Sequence[float]) -> float:
        """The log-odds of being grounded, for features in the order of DIRECTIONS."""
        return self.intercept + sum(term.log_odds(value) for term, value in zip(self.terms, features, strict=True))

    def to_json(self) -> dict[str, Any]:
        """As the file has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What ``to_json`` gave."""
        return cls(
            terms=tuple(Term(**term) for term in value["terms"]),
            intercept=value["intercept"],
            scorers=tuple(ScorerIdentity(**scorer) for scorer in value["scorers"]),
            provenance=value["provenance"],
        )


@cache
def shipped_fused() -> Fused:
    """The coefficients that come with the package. Its ``scorers`` are those whose scores they are for."""
    file = resources.files(__package__) / FILE
    return Fused.from_json(json.loads(file.read_text(encoding="utf-8")))


@cache
def equal_fused() -> Fused:
    """The shipped model with the same weight for every term, each in its direction."""
    shipped = shipped_fused()
    terms = tuple(replace(term, coefficient=EQUAL_COEFFICIENT * DIRECTIONS[term.name]) for term in shipped.terms)
    return replace(shipped, terms=terms, intercept=EQUAL_INTERCEPT)


def fused_features(exchange: Exchange, grounding: AnswerGrounding) -> list[tuple[float, ...] | None]:
    """The features of each sentence, in the order of DIRECTIONS; None where it has no score."""
    scored = [sentence for sentence in grounding.sentences if sentence.gap is not None]
    texts = [exchange.answer[one.sentence.start : one.sentence.end] for one in scored]
    novel = novelties(exchange, texts)
    rows = {
        sentence.index: _features(sentence, novelty, _neighbours(novel, place))
        for place, (sentence, novelty) in enumerate(zip(scored, novel, strict=True))
    }
    return [rows.get(sentence.index) for sentence in grounding.sentences]


def _features(sentence: SentenceGrounding, novelty: Novelty, neighbours: float) -> tuple[float, ...]:
    return (
        sentence.jsd_no_context or 0.0,
        min(HIGHEST_GAP_NATS, max(LOWEST_GAP_NATS, sentence.gap or 0.0)),
        novelty.words,
        novelty.pairs,
        neighbours,
        math.log1p(novelty.names),
        math.log1p(novelty.numbers),
        math.log(sentence.n_tokens),
    )


def _neighbours(novel: Sequence[Novelty], place: int) -> float:
    """The mean share of novel words in the sentences before and after; its own where there is none."""
    beside = [*novel[max(0, place - 1) : place], *novel[place + 1 : place + 2]] or [novel[place]]
    return sum(one.words for one in beside) / len(beside)
