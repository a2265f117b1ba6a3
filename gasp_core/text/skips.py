"""Why a sentence or an answer has no score."""

from __future__ import annotations

from collections.abc import Sequence

from gasp_core.grounding import AnswerSkip, Chunk, Exchange, Sentence, SentenceSkip, UnitKind
from gasp_core.text.claims import is_no_claim
from gasp_core.text.evidence import is_unseen
from gasp_core.text.refusals import is_refusal

MIN_TOKENS = 3
"""What a sentence has at least beside others that have as many; if none has, one token is enough for each."""

SKIPPED_KINDS = {
    UnitKind.HEADING: SentenceSkip.HEADING,
    UnitKind.CODE: SentenceSkip.CODE,
    UnitKind.TABLE_RULE: SentenceSkip.TABLE_RULE,
    UnitKind.THOUGHT: SentenceSkip.THOUGHT,
}
# Beside these an answer that refuses says nothing more.
_BESIDE_REFUSAL = frozenset(
    {
        SentenceSkip.REFUSAL,
        SentenceSkip.NO_CLAIM,
        SentenceSkip.HEADING,
        SentenceSkip.TABLE_RULE,
        SentenceSkip.THOUGHT,
    }
)

_OF_SENTENCES = {
    AnswerSkip.NO_PASSAGES: SentenceSkip.NO_PASSAGES,
    AnswerSkip.QUESTION_TOO_LONG: SentenceSkip.QUESTION_TOO_LONG,
}


def answer_skip(exchange: Exchange, sentences: Sequence[Sentence], chunks: Sequence[Chunk]) -> AnswerSkip | None:
    """Why an answer is not read at all, as far as its texts tell.

    It is a refusal if a sentence refuses and no other one claims anything. One that claims nothing and does not refuse
    has nothing to score, which ``sentence_skips`` tells.
    """
    if is_unseen(exchange.answer):
        return AnswerSkip.EMPTY_ANSWER
    if not chunks:
        return AnswerSkip.NO_PASSAGES
    return AnswerSkip.REFUSAL if is_refused(text_skips(exchange.answer, sentences)) else None


def is_refused(skips: Sequence[SentenceSkip | None]) -> bool:
    """Whether an answer of which the texts of the sentences tell this is a refusal as a whole."""
    return SentenceSkip.REFUSAL in skips and all(skip in _BESIDE_REFUSAL for skip in skips)


def skips_of(skip: AnswerSkip, answer: str, sentences: Sequence[Sentence]) -> list[SentenceSkip]:
    """Why each sentence of an answer that is not read has no score."""
    if skip is AnswerSkip.REFUSAL:
        return [found or SentenceSkip.REFUSAL for found in text_skips(answer, sentences)]
    return [_OF_SENTENCES.get(skip, SentenceSkip.TOO_SHORT)] * len(sentences)


def text_skips(answer: str, sentences: Sequence[Sentence]) -> list[SentenceSkip | None]:
    """Why each sentence is not scored as far as its layout and text tell, whatever its length."""
    return [_text_skip(sentence, answer[sentence.start : sentence.end]) for sentence in sentences]


def sentence_skips(
    answer: str, sentences: Sequence[Sentence], members: Sequence[Sequence[int]], scored_tokens: int
) -> list[SentenceSkip | None]:
    """Why each sentence has no score when the first ``scored_tokens`` tokens of the answer have one.

    ``members`` are the tokens of each sentence. A short sentence is skipped beside longer ones only: if it is the whole
    answer ("42."), a single token is enough.
    """
    found = text_skips(answer, sentences)
    least = least_size([len(tokens) for tokens, skip in zip(members, found, strict=True) if skip is None], MIN_TOKENS)
    return [skip or _size_skip(tokens, scored_tokens, least) for tokens, skip in zip(members, found, strict=True)]


def least_size(sizes: Sequence[int], usual: int) -> int:
    """How long a sentence must be to be scored, given the lengths of those that may be."""
    return usual if any(size >= usual for size in sizes) else 1


def _text_skip(sentence: Sentence, text: str) -> SentenceSkip | None:
    if skipped := SKIPPED_KINDS.get(sentence.kind):
        return skipped
    if is_refusal(text):
        return SentenceSkip.REFUSAL
    return SentenceSkip.NO_CLAIM if is_no_claim(text) else None


def _size_skip(tokens: Sequence[int], scored_tokens: int, least: int) -> SentenceSkip | None:
    if tokens and tokens[-1] >= scored_tokens:
        return SentenceSkip.PAST_WINDOW
    return SentenceSkip.TOO_SHORT if len(tokens) < least else None
