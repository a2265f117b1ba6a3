from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.facts import Facts, facts
from gasp_core.text.languages import Language, language_of
from gasp_core.text.words import words


def of(text: str, language: Language | None = None) -> Facts:
    return facts(text, list(words(text, language)), language)


@pytest.mark.parametrize(
    ("language", "in_words", "in_digits"),
    [
        (Language.ENGLISH, "Twelve euros and thirty cents", "12 euros and 30 cents"),
        (Language.GERMAN, "zwölf Euro", "12 Euro"),
        (Language.FRENCH, "vingt euros", "20 euros"),
        (Language.SPANISH, "diez euros", "10 euros"),
        (Language.HINDI, "दस रुपये", "१० रुपये"),
    ],
)
def test_a_number_in_words_is_the_number(language: Language, in_words: str, in_digits: str) -> None:
    assert of(in_words, language).numbers == of(in_digits, language).numbers


@pytest.mark.parametrize(
    ("language", "text", "dates"),
    [
        (Language.ENGLISH, "It may open on Monday, 5 May 2024.", {"day 1", "m5", "2024"}),
        (Language.GERMAN, "Am Mittwoch, dem 3. Oktober 1990", {"day 3", "m10", "1990"}),
        (Language.FRENCH, "Le dimanche 14 août", {"day 7", "m8"}),
        (Language.SPANISH, "El miércoles 2 de enero", {"day 3", "m1"}),
        (Language.HINDI, "सोमवार, 5 मार्च", {"day 1", "m3"}),
        (Language.JAPANESE, "2024年3月5日", {"2024", "y2024", "m3", "d5"}),
    ],
)
def test_months_days_and_years_are_dates(language: Language, text: str, dates: set[str]) -> None:
    assert of(text, language).dates == dates


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5 kilometres"),
        ("5 %", "5 percent"),
        ("5 Prozent", "5%"),
        ("€5", "5 euros"),
        ("5キロ", "5kg"),
        ("20°C", "20 °C"),
    ],
)
def test_a_unit_is_the_same_by_its_sign_and_its_names(one: str, other: str) -> None:
    assert of(one).units == of(other).units
    assert len(of(one).units) == 1


def test_a_word_is_a_unit_behind_a_number_only() -> None:
    assert of("the second year in the garden").units == frozenset()


@pytest.mark.parametrize(
    ("language", "denies", "affirms"),
    [
        (Language.ENGLISH, "It isn’t open.", "It is open in November."),
        (Language.GERMAN, "Es gibt keine Karten.", "Es gibt Karten."),
        (Language.FRENCH, "Il n’ouvre jamais.", "Il ouvre."),
        (Language.SPANISH, "Nadie lo vio.", "Alguien lo vio."),
        (Language.ITALIAN, "Non apre.", "Apre."),
        (Language.PORTUGUESE, "Não abre.", "Abre."),
        (Language.DUTCH, "Het is niet open.", "Het is open."),
        (Language.HINDI, "यह खुला नहीं है।", "यह खुला है।"),
        (Language.JAPANESE, "開いていません。", "開いています。"),
        (Language.JAPANESE, "開けずに待つ。", "開けて待つ。"),
        (Language.CHINESE, "不开门。", "开门。"),
        (Language.KOREAN, "문을 열지 않는다.", "문을 연다."),
        (Language.THAI, "ไม่เปิด", "เปิด"),
    ],
)
def test_a_sentence_that_denies_something_is_told(language: Language, denies: str, affirms: str) -> None:
    assert of(denies, language).negates
    assert not of(affirms, language).negates


@given(st.text())
def test_any_text_has_facts(text: str) -> None:
    assert all(of(text, language_of(text)).numbers | {"0"})
