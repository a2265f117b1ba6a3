from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import Exchange, Passage
from gasp_core.text.languages import UNTOLD, Language, ToldLanguage, language_of, told_language
from gasp_core.text.lexical import exchange_language, told_language_of

SAMPLES = {
    "The museum opens at nine.": Language.ENGLISH,
    "Das Museum öffnet um neun Uhr.": Language.GERMAN,
    "Le musée ouvre à neuf heures et l'entrée coûte dix euros.": Language.FRENCH,
    "El museo abre a las nueve.": Language.SPANISH,
    "Il museo apre alle nove e l'ingresso costa dieci euro.": Language.ITALIAN,
    "O museu abre às nove horas e não fecha ao domingo.": Language.PORTUGUESE,
    "Het museum gaat om negen uur open.": Language.DUTCH,
    "संग्रहालय सुबह नौ बजे खुलता है।": Language.HINDI,
    "博物館は九時に開きます。": Language.JAPANESE,
    "博物馆九点开门。": Language.CHINESE,
    "博物馆收藏了日本漫画《ワンピース》的手稿，还收藏了许多其他国家的作品和文献资料。": Language.CHINESE,
    "박물관은 아홉 시에 문을 엽니다.": Language.KOREAN,
    "พิพิธภัณฑ์เปิดเก้าโมง": Language.THAI,
    "ຫໍພິພິດທະພັນເປີດ": Language.LAO,
    "ပြတိုက်ကို ဖွင့်သည်": Language.BURMESE,
    "សារមន្ទីរបើកម៉ោង ៩": Language.KHMER,
    "འགྲེམས་སྟོན་ཁང་ནི་ཆུ་ཚོད་དགུ་པར་སྒོ་འབྱེད།": Language.TIBETAN,
    "OpenAIのAPIは2024年に公開された新しい機能です。": Language.JAPANESE,
}
UNSUPPORTED = {
    "Museet öppnar klockan nio och det är gratis.": "sv",
    "El museu obre a les nou i l'entrada és gratuïta per als nens.": "ca",
    "Müze saat dokuzda açılır ve giriş bir kişi için ücretsizdir.": "tr",
    "संग्रहालय सकाळी नऊ वाजता उघडते आणि प्रवेश विनामूल्य आहे": "mr",
    "Музей открывается в девять.": "und-Cyrl",
    "المتحف يفتح في التاسعة": "und-Arab",
    "Το μουσείο ανοίγει στις εννέα.": "und-Grek",
    "அருங்காட்சியகம் ஒன்பது மணிக்கு திறக்கும்": "und-Taml",
    "Safnið opnar klukkan níu.": "und",
}


@pytest.mark.parametrize("text", SAMPLES)
def test_a_sentence_tells_its_language(text: str) -> None:
    assert language_of(text) is SAMPLES[text]


@pytest.mark.parametrize("text", [*UNSUPPORTED, "42.", "", "!?", "SmolLM2-135M"])
def test_no_supported_language_is_told_of_others_and_of_too_little(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_a_language_that_is_not_supported_is_named_as_far_as_it_can_be(text: str) -> None:
    assert told_language(text) == ToldLanguage(UNSUPPORTED[text], is_supported=False)


def test_an_answer_that_is_too_short_to_tell_is_taken_for_what_question_and_passages_are() -> None:
    russian = Passage("a", "Музей открывается в девять.")
    assert told_language_of(Exchange("Когда?", (russian,), "9:00")) == ToldLanguage("und-Cyrl", is_supported=False)
    english = Exchange("When does it open?", (Passage("a", "The museum opens at nine."),), "9:00")
    assert told_language_of(english) == ToldLanguage("en", is_supported=True)
    assert told_language_of(Exchange("", (), "9:00")) == UNTOLD


@given(st.text())
def test_what_is_told_is_what_the_words_are_compared_by(text: str) -> None:
    exchange = Exchange("", (), text)
    language, told = exchange_language(exchange), told_language_of(exchange)
    assert told.is_supported == (language is not None)
    assert told.tag == language if language is not None else told.tag not in list(Language)


def test_a_name_in_another_script_does_not_change_the_language() -> None:
    assert language_of("The museum is called 博物館 and it is in the old town of the city.") is Language.ENGLISH


@given(st.text())
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text) in {None, *Language}
