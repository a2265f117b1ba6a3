"""Sentences that claim nothing, in several languages, and those that look like them and say something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.claims import is_no_claim

NO_CLAIMS = [
    "Here is a summary:",
    "Based on the given passages, here are the steps:",
    "Sure! Here's how to bake it:",
    "**Here are the main points:**",
    "Here is the answer to your question.",
    "To reset the clock, follow these steps:",
    "Alternatively, you can also try one of the following methods:",
    "According to the passages, the benefits of tea are as follows:",
    "Based on the provided passages, the symptoms include:",
    "The steps are as follows.",
    "Passage 1:",
    "Ingredients:",
    "In summary:",
    "The passages do not say who won.",
    "Note that the passages do not mention fees.",
    "However, the provided documents do not specify a date.",
    "The exact price is not mentioned in the provided passages.",
    "This answer is based on the provided passages.",
    "(Source: Passage 2)",
    "[1][2]",
    "I hope this helps!",
    "I hope this answers your question.",
    "Let me know if you have any other questions!",
    "If you have any further questions, please feel free to ask.",
    "Is there anything else I can help you with?",
    "Would you like me to explain the details?",
    "You're welcome!",
    "Great question!",
    "👍",
    "...",
    # German
    "Hier ist eine Zusammenfassung:",
    "Basierend auf den bereitgestellten Passagen sind hier die Schritte:",
    "Um die Uhr zu stellen, befolgen Sie diese Schritte:",
    "Zusammenfassung:",
    "Die Passagen erwähnen keine Gebühren.",
    "In den Dokumenten wird der Preis nicht genannt.",
    "Ich hoffe, das hilft Ihnen weiter!",
    "Lassen Sie mich wissen, wenn Sie weitere Fragen haben.",
    "Wenn Sie weitere Fragen haben, helfe ich gerne.",
    "Kann ich Ihnen sonst noch helfen?",
    # French
    "Voici un résumé :",
    "D'après les passages fournis, voici les étapes :",
    "Pour régler l'horloge, suivez ces étapes :",
    "Les passages ne précisent pas la date.",
    "J'espère que cela vous aide !",
    "N'hésitez pas à me poser d'autres questions.",
    "Souhaitez-vous plus de détails ?",
    # Spanish
    "Aquí tienes un resumen:",
    "Según los documentos proporcionados, estos son los pasos:",
    "Para ajustar el reloj, siga estos pasos:",
    "Los pasajes no mencionan el precio.",
    "¡Espero que esto te ayude!",
    "Si tienes más preguntas, no dudes en preguntar.",
    "¿Puedo ayudarte con algo más?",
    # Italian, Portuguese, Dutch
    "Ecco un riassunto:",
    "Spero che questo ti sia utile!",
    "Aqui está um resumo:",
    "Espero que isso ajude!",
    "Hier is een samenvatting:",
    "Ik hoop dat dit helpt!",
    # Hindi
    "यहाँ एक सारांश है:",
    "घड़ी सेट करने के लिए इन चरणों का पालन करें:",
    "दिए गए अनुच्छेदों में शुल्क का उल्लेख नहीं है।",
    "मुझे आशा है कि यह आपकी मदद करेगा!",
    "यदि आपके कोई और प्रश्न हैं, तो कृपया पूछें।",
    # Japanese, Chinese
    "以下は要約です。",
    "手順は以下の通りです。",
    "以下の手順に従ってください。",
    "料金については、提供された文書には記載されていません。",
    "お役に立てれば幸いです。",
    "他にご質問がありましたら、お気軽にお尋ねください。",
    "以下是摘要：",
    "希望这对您有帮助！",
]
CLAIMS = [
    "",
    "42.",
    "Yes.",
    "Here is the answer: 42.",
    "Here are the steps: mix, bake and serve.",
    "Here in Ulm it rains.",
    "Here is the main risk of the drug, death:",
    "The capital is Paris:",
    "The drug, which kills one in ten, has side effects that include:",
    "The drug kills mice and its side effects include:",
    "In 1998 the causes were:",
    "To stop the bleeding, press on it.",
    "The passages do not mention fees, but the card costs five dollars.",
    "The passages do not say when, so bake it for twenty minutes.",
    "The passages do not mention that it costs 5 dollars.",
    "The study does not mention side effects.",
    "The text does not say who won.",
    "Passage 3 does not mention nausea.",
    "The contract is not mentioned in the will.",
    "The price of 5 dollars is not mentioned in the passages.",
    "Let me know if it rains: it never does.",
    "I hope this helps, because the museum closes at six.",
    "If you have questions, the desk in room 4 is open.",
    "If you have a fever, please ask a doctor.",
    "Enjoy the view of the 300 m tower.",
    "He hopes this helps the poor.",
    "Good luck charms were sold in Rome, and they were made of lead.",
    "Step 1: Fill it.",
    "Note: It is poisonous.",
    "Mercury:",
    "Hier ist es kalt.",
    "Hier ist die Antwort: 42.",
    "Der Vertrag erwähnt keine Gebühren.",
    "Die Passagen erwähnen keine Gebühren, aber die Karte kostet fünf Euro.",
    "Wenn Sie Fieber haben, trinken Sie viel.",
    "Voici la réponse : 42.",
    "Le contrat ne précise pas la date.",
    "Aquí está Madrid.",
    "El contrato no menciona el precio.",
    "Si tiene fiebre, beba agua.",
    "यहाँ बारिश होती है।",
    "अनुबंध में शुल्क का उल्लेख नहीं है।",
    "यदि आपको बुखार है, तो पानी पिएं।",
    "以下の国は島国です。",
    "次の日は雨でした。",
    "契約書には料金は記載されていません。",
    "下面是河。",
]


@pytest.mark.parametrize("sentence", NO_CLAIMS)
def test_a_sentence_that_says_nothing_of_the_subject_is_no_claim(sentence: str) -> None:
    assert is_no_claim(sentence)
    assert is_no_claim(f"  {sentence.upper() if sentence.isascii() else sentence}\n\n")


@pytest.mark.parametrize("sentence", CLAIMS)
def test_a_sentence_that_says_something_is_a_claim(sentence: str) -> None:
    assert not is_no_claim(sentence) or not sentence


def test_a_long_sentence_is_a_claim() -> None:
    assert is_no_claim("Here is a list of " + "x" * 150 + ":")
    assert not is_no_claim("Here is a list of " + "x" * 300 + ":")
    assert not is_no_claim("Here is a list of " + "\ufdfa" * 200 + ":")
    assert not is_no_claim("The passages do not say " + "[1] " * 1_000)


WORDS = [
    *(
        "here",
        "are",
        "the",
        "passages",
        "do not",
        "mention",
        "steps",
        "follow",
        "these",
        ":",
        ",",
        "hope",
        "this helps",
    ),
    *("hier", "voici", "aquí", "यहाँ", "以下", "の", "お役に立て", "希望", "x" * 99, "1", "?", "[1]"),
]


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_get_an_answer(words: list[str]) -> None:
    assert is_no_claim(" ".join(words)) in {True, False}


@given(st.text(st.characters(exclude_categories=[])))
def test_any_string_gets_an_answer(text: str) -> None:
    assert is_no_claim(text) in {True, False}
