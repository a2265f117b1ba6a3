from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.languages import Language, language_of

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
UNSUPPORTED = [
    "Museet öppnar klockan nio och det är gratis.",
    "El museu obre a les nou i l'entrada és gratuïta per als nens.",
    "Müze saat dokuzda açılır ve giriş bir kişi için ücretsizdir.",
    "संग्रहालय सकाळी नऊ वाजता उघडते आणि प्रवेश विनामूल्य आहे",
    "Музей открывается в девять.",
    "المتحف يفتح في التاسعة",
    "Το μουσείο ανοίγει στις εννέα.",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_a_sentence_tells_its_language(text: str) -> None:
    assert language_of(text) is SAMPLES[text]


@pytest.mark.parametrize("text", [*UNSUPPORTED, "42.", "", "!?", "SmolLM2-135M"])
def test_no_supported_language_is_told_of_others_and_of_too_little(text: str) -> None:
    assert language_of(text) is None


def test_a_name_in_another_script_does_not_change_the_language() -> None:
    assert language_of("The museum is called 博物館 and it is in the old town of the city.") is Language.ENGLISH


@given(st.text())
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text) in {None, *Language}
