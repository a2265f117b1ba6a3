"""From people's labels to our sentences: which of our sentences is unsupported.

People label spans of characters, or sentences that they cut in another way. What two segmentations disagree on is a
mark or a blank at a border, which must not carry a label over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gasp_core.evaluation.data import LabelledAnswer, LabelSpan
from gasp_core.grounding import Sentence

# Visible characters of a span within a sentence. Fewer count only if they are all that one of the two has.
MIN_OVERLAP_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class SentenceLabel:
    """What people's labels say of one sentence of ours.

    ``unsupported`` is None if nobody labelled it. ``kinds`` are the types of the unsupported spans in it. ``weight`` is
    how many sentences it stands for.
    """

    unsupported: bool | None
    kinds: frozenset[str] = frozenset()
    weight: float = 1.0


def sentence_labels(answer: LabelledAnswer, sentences: Sequence[Sentence]) -> list[SentenceLabel]:
    """Label our sentences.

    Where only the answer was judged, its label is that of every sentence. A sentence is unsupported if an unsupported
    span shares at least three visible characters with it, or all that one of the two has. Where people labelled
    sentences instead, theirs counts for ours if the two share at least half of the visible characters of the shorter
    one: ours is unsupported if one such is, and without a label if there is none.
    """
    text = answer.exchange.answer
    if answer.label is not None:
        return [SentenceLabel(answer.label)] * len(sentences)
    if answer.spans is not None:
        return [_by_spans(text, sentence, answer.spans) for sentence in sentences]
    return [_by_sentences(text, sentence, answer.sentences or ()) for sentence in sentences]


def _by_spans(text: str, sentence: Sentence, spans: Sequence[LabelSpan]) -> SentenceLabel:
    hits = [span for span in spans if _touches(text, sentence, span)]
    return SentenceLabel(bool(hits), _kinds(hits))


def _touches(text: str, sentence: Sentence, span: LabelSpan) -> bool:
    shared, shorter = _overlap(text, sentence, span)
    return shared >= min(MIN_OVERLAP_CHARACTERS, max(1, shorter))


def _by_sentences(text: str, sentence: Sentence, theirs: Sequence[LabelSpan]) -> SentenceLabel:
    same = [span for span in theirs if _is_mostly_shared(text, sentence, span)]
    hits = [span for span in same if span.unsupported]
    weight = max((span.weight for span in same), default=1.0)
    return SentenceLabel(bool(hits) if same else None, _kinds(hits), weight)


def _is_mostly_shared(text: str, sentence: Sentence, span: LabelSpan) -> bool:
    shared, shorter = _overlap(text, sentence, span)
    return 0 < shorter <= 2 * shared


def _overlap(text: str, sentence: Sentence, span: LabelSpan) -> tuple[int, int]:
    """Visible characters that the two share, and those of the shorter one."""
    shared = _visible(text, max(sentence.start, span.start), min(sentence.end, span.end))
    return shared, min(_visible(text, sentence.start, sentence.end), _visible(text, span.start, span.end))


def _visible(text: str, start: int, end: int) -> int:
    return sum(not character.isspace() for character in text[start:end]) if start < end else 0


def _kinds(spans: Sequence[LabelSpan]) -> frozenset[str]:
    return frozenset(span.kind for span in spans if span.kind is not None)
