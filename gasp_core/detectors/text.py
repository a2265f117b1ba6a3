"""Detectors that read the texts alone and ask no model: controls that every other one is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Need, Read
from gasp_core.grounding import Exchange, Sentence, SentenceSkip
from gasp_core.text import skips
from gasp_core.text.lexical import novelties
from gasp_core.text.words import stems

MIN_WORDS = 2


def by_text(feature: Callable[[Exchange, Sequence[str]], Iterable[float]]) -> Read:
    """Read the texts of an answer's sentences; those that are no claim, as far as the text tells, have no feature."""

    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        exchange = evidence.exchange
        texts = _texts(evidence)
        return [
            FeatureVector(reason=skip) if skip else FeatureVector((value,))
            for skip, value in zip(text_skips(evidence), feature(exchange, texts), strict=True)
        ]

    return read


def text_skips(evidence: AnswerEvidence) -> list[SentenceSkip | None]:
    """Why each sentence has no score, as far as the text alone tells: what the scorer would skip, too."""
    return _skips(evidence.sentences, evidence.exchange, _texts(evidence))


def _texts(evidence: AnswerEvidence) -> list[str]:
    return [evidence.exchange.answer[sentence.start : sentence.end] for sentence in evidence.sentences]


def _length(_exchange: Exchange, texts: Sequence[str]) -> list[float]:
    return [-float(len(stems(text))) for text in texts]


def _known_words(exchange: Exchange, texts: Sequence[str]) -> list[float]:
    return [-novelty.words for novelty in novelties(exchange, texts)]


def _skips(sentences: Sequence[Sentence], exchange: Exchange, texts: Sequence[str]) -> list[SentenceSkip | None]:
    if not any(passage.text.strip() for passage in exchange.passages):
        return [SentenceSkip.NO_PASSAGES] * len(texts)
    found = skips.text_skips(exchange.answer, sentences)
    if skips.is_refused(found):
        return found
    sizes = [_words(text) if skip is None else 0 for text, skip in zip(texts, found, strict=True)]
    least = skips.least_size(sizes, MIN_WORDS)
    return [skip or (SentenceSkip.TOO_SHORT if size < least else None) for skip, size in zip(found, sizes, strict=True)]


def _words(text: str) -> int:
    """How many words there are, by blanks or by what its script has instead."""
    return max(len(text.split()), len(stems(text)))


LENGTH = Detector("length", Need.TEXT, by_text(_length))
LEXICAL = Detector("lexical", Need.TEXT, by_text(_known_words))
