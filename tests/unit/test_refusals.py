from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.refusals import is_refusal

REFUSALS = [
    "I don't know.",
    "I don’t know the answer to that.",
    "**I do not know.**",
    "Sorry.",
    "I'm sorry, but I can't help with that.",
    "I am unable to answer the question.",
    "I cannot find any information about this in the provided passages.",
    "I do not have enough information to answer that.",
    "As an AI language model, I cannot provide medical advice.",
    "Unable to answer based on given passages.",
    "Based on the provided passages, I am unable to give the phone number.",
    "Therefore, I cannot answer this question based only on the given context.",
    "It is not possible to answer the question based on the given passages.",
    "The answer is not found in the given passages.",
    "There is no information about refunds in the provided documents.",
    "The provided context does not contain information about fees.",
    "The provided documents do not mention the refund period.",
    "The passages do not provide enough information to determine the time.",
    "Unfortunately, the passages contain no information on this topic, so I cannot answer.",
    "Not enough information.",
    "Please provide more context.",
    "N/A",
    "Ich weiß es nicht.",
    "Leider kann ich diese Frage nicht beantworten.",
    "Es tut mir leid, aber ich kann dabei nicht helfen.",
    "Der bereitgestellte Kontext enthält keine Informationen über Preise.",
    "Je ne sais pas.",
    "Désolé, je ne peux pas répondre à cette question.",
    "Le contexte fourni ne contient pas cette information.",
    "No lo sé.",
    "Lo siento, no puedo ayudarte con eso.",
    "El contexto proporcionado no contiene información sobre precios.",
    "Non lo so.",
    "Mi dispiace, ma non posso rispondere a questa domanda.",
    "Il contesto fornito non contiene informazioni sui prezzi.",
    "Não sei.",
    "Desculpe, não posso ajudar com isso.",
    "O contexto fornecido não menciona o preço.",
    "我不知道。",
    "抱歉，我无法回答这个问题。",
    "根据提供的资料，无法回答该问题。",
    "提供的上下文中没有提到这一点。",
    "わかりません。",
    "申し訳ありませんが、その質問にはお答えできません。",
    "提供された文書には、その情報は含まれていません。",
]
CLAIMS = [
    "",
    "  \n",
    "...",
    "No.",
    "The answer is 5.",
    "The study does not mention side effects in children under 5.",
    "The passages do not mention fees.",
    "Passage 3 does not mention nausea.",
    "The text does not say who won.",
    "The contract contains no information about penalties.",
    "The document does not contain a signature.",
    "There is no evidence of harm.",
    "There is no mention of a fee.",
    "Information is not available on weekends.",
    "It is impossible to determine the cause of death.",
    "They don't know the reason.",
    "He does not know the answer.",
    "The device cannot help with sleep.",
    "Unable to answer calls, the company closed its line.",
    "We are unable to process your request.",
    "I cannot recommend the red one.",
    "I'm sorry to hear that your card was declined.",
    "The provided context does not contain the price, but it says that shipping costs 5 dollars.",
    "I don't know the exact price; it was about 5 dollars.",
    "I cannot answer that, and the fee is 5 dollars.",
    "The passages do not provide cooking times, so you should check the fish often.",
    "The provided passages do not mention Paris, which is the capital of France.",
    "Der Vertrag enthält keine Informationen über Strafen.",
    "Il ne sait pas nager.",
    "No puedo es una canción.",
    "无法确定死因。",
    "彼はそれを知りません。",
]


@pytest.mark.parametrize("sentence", REFUSALS)
def test_a_sentence_that_only_says_that_there_is_no_answer_is_a_refusal(sentence: str) -> None:
    assert is_refusal(sentence)
    assert is_refusal(f"  {sentence.upper() if sentence.isascii() else sentence}\n\n")


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_sentence_that_says_something_is_no_refusal(sentence: str) -> None:
    assert not is_refusal(sentence)


def test_a_long_sentence_is_no_refusal() -> None:
    assert is_refusal("I don't know " + "x" * 200)
    assert not is_refusal("I don't know " + "x" * 300)
    assert not is_refusal("I don't know " + "\ufdfa" * 200)  # one character for an 18-letter phrase


WORDS = [
    "i",
    "can't",
    "the",
    "provided",
    "context",
    "in",
    "not",
    ",",
    "so",
    ":;",
    "ich kann",
    "お答え",
    "无法",
    "x" * 99,
]


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_get_an_answer(words: list[str]) -> None:
    assert is_refusal(" ".join(words)) in {True, False}


@given(st.text(st.characters(exclude_categories=[])))
def test_any_string_gets_an_answer(text: str) -> None:
    assert is_refusal(text) in {True, False}
