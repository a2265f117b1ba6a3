"""Why sentences and answers have no score, as far as their texts and sizes tell."""

from __future__ import annotations

import pytest

from gasp_core.grounding import AnswerSkip, Exchange, Passage, Sentence, SentenceSkip, UnitKind
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer
from gasp_core.text.skips import answer_skip, sentence_skips, skips_of, text_skips

PASSAGES = (Passage("1", "It opens at nine. Sunday is a holiday."),)
SAID = "It opens at nine."


def skips(answer: str, scored_tokens: int = 1_000) -> list[SentenceSkip | None]:
    """With a token for each word."""
    sentences = split_answer(answer)
    members: list[list[int]] = []
    for sentence in sentences:
        first = sum(map(len, members))
        members.append(list(range(first, first + len(answer[sentence.start : sentence.end].split()))))
    return sentence_skips(answer, sentences, members, scored_tokens)


def why(answer: str) -> AnswerSkip | None:
    exchange = Exchange("When?", PASSAGES, answer)
    return answer_skip(exchange, split_answer(answer), context_chunks(PASSAGES, 5))


@pytest.mark.parametrize(
    ("kind", "tokens", "expected"),
    [
        (UnitKind.CODE, [0, 1, 2, 3], SentenceSkip.CODE),
        (UnitKind.HEADING, [0, 1, 2, 3], SentenceSkip.HEADING),
        (UnitKind.TABLE_RULE, [0, 1, 2, 3], SentenceSkip.TABLE_RULE),
        (UnitKind.THOUGHT, [0, 1, 2, 3], SentenceSkip.THOUGHT),
        (UnitKind.PROSE, [0, 1], SentenceSkip.TOO_SHORT),
        (UnitKind.PROSE, [], SentenceSkip.TOO_SHORT),
        (UnitKind.PROSE, [3, 4, 5], SentenceSkip.PAST_WINDOW),
        (UnitKind.PROSE, [7, 8, 9], SentenceSkip.PAST_WINDOW),
        (UnitKind.LIST_ITEM, [0, 1, 2], None),
        (UnitKind.TABLE_ROW, [2, 3, 4], None),
    ],
)
def test_a_sentence_beside_a_longer_one_has_its_reason(
    kind: UnitKind, tokens: list[int], expected: SentenceSkip | None
) -> None:
    answer = SAID * 2
    sentences = [Sentence(0, 17, kind), Sentence(17, 34, UnitKind.PROSE)]
    assert sentence_skips(answer, sentences, [tokens, [0, 1, 2]], 5) == [expected, None]


def test_sentences_that_claim_nothing_are_skipped_beside_those_that_do() -> None:
    answer = f"Here are the hours:\n\n{SAID} The passages do not mention fees. I cannot answer that. I hope this helps!"
    none = SentenceSkip.NO_CLAIM
    assert skips(answer) == [none, None, none, SentenceSkip.REFUSAL, none]
    assert why(answer) is None


@pytest.mark.parametrize("answer", ["42.", "Yes", "九時", "No.\n\nI hope this helps!", "# Opening\n\n9 a.m."])
def test_a_short_sentence_that_is_the_whole_answer_is_scored(answer: str) -> None:
    assert skips(answer).count(None) == 1
    assert why(answer) is None


def test_a_short_sentence_is_too_short_beside_a_longer_one() -> None:
    assert skips(f"Yes. {SAID}") == [SentenceSkip.TOO_SHORT, None]
    assert skips("Yes. No.") == [None, None]


@pytest.mark.parametrize("answer", ["👍", "🙂 🙂", "...", "[1]", "I hope this helps!", "Here is a summary:"])
def test_an_answer_without_a_claim_has_nothing_to_score_and_is_no_refusal(answer: str) -> None:
    assert set(skips(answer)) == {SentenceSkip.NO_CLAIM}
    assert why(answer) is None


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I'm sorry. I cannot answer that.",
        "I cannot answer that from the passages. Let me know if you have other questions!",
        "# Answer\n\nI don't know.",
    ],
)
def test_an_answer_that_refuses_and_claims_nothing_is_a_refusal(answer: str) -> None:
    assert why(answer) is AnswerSkip.REFUSAL


def test_a_refusal_beside_a_claim_or_code_is_no_refusal_of_the_answer() -> None:
    assert why(f"I don't know the fee. {SAID}") is None
    assert why("I cannot answer that.\n\n```\nx = 1\n```") is None


def test_the_sentences_of_a_refusal_keep_their_own_reasons() -> None:
    answer = "I cannot answer that. I hope this helps!"
    sentences = split_answer(answer)
    assert skips_of(AnswerSkip.REFUSAL, answer, sentences) == [SentenceSkip.REFUSAL, SentenceSkip.NO_CLAIM]
    assert text_skips(answer, sentences) == [SentenceSkip.REFUSAL, SentenceSkip.NO_CLAIM]
    assert skips_of(AnswerSkip.NO_PASSAGES, answer, sentences) == [SentenceSkip.NO_PASSAGES] * 2
