"""Why a sentence or an answer has no score."""

from __future__ import annotations

from collections.abc import Sequence

from gasp_core.grounding import AnswerSkip, Chunk, Exchange, Sentence, SentenceSkip, UnitKind
from gasp_core.text.evidence import is_unseen
from gasp_core.text.refusals import is_refusal

MIN_TOKENS = 3

SKIPPED_KINDS = {
    UnitKind.HEADING: SentenceSkip.HEADING,
    UnitKind.CODE: SentenceSkip.CODE,
    UnitKind.TABLE_RULE: SentenceSkip.TABLE_RULE,
}

_OF_SENTENCES = {
    AnswerSkip.NO_PASSAGES: SentenceSkip.NO_PASSAGES,
    AnswerSkip.REFUSAL: SentenceSkip.REFUSAL,
    AnswerSkip.QUESTION_TOO_LONG: SentenceSkip.QUESTION_TOO_LONG,
}


def answer_skip(exchange: Exchange, sentences: Sequence[Sentence], chunks: Sequence[Chunk]) -> AnswerSkip | None:
    """Why an answer is not read at all, as far as its texts tell."""
    if is_unseen(exchange.answer):
        return AnswerSkip.EMPTY_ANSWER
    if not chunks:
        return AnswerSkip.NO_PASSAGES
    if all(is_refusal(exchange.answer[sentence.start : sentence.end]) for sentence in sentences):
        return AnswerSkip.REFUSAL
    return None


def of_its_sentences(skip: AnswerSkip) -> SentenceSkip:
    """What each sentence of an answer that is not read says."""
    return _OF_SENTENCES.get(skip, SentenceSkip.TOO_SHORT)


def skip_for(sentence: Sentence, tokens: Sequence[int], scored_tokens: int) -> SentenceSkip | None:
    """Why a sentence of these answer tokens gets no score when the first ``scored_tokens`` of the answer have one."""
    if skipped := SKIPPED_KINDS.get(sentence.kind):
        return skipped
    if tokens and tokens[-1] >= scored_tokens:
        return SentenceSkip.PAST_WINDOW
    return SentenceSkip.TOO_SHORT if len(tokens) < MIN_TOKENS else None
