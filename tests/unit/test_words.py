from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.text.languages import Language
from gasp_core.text.words import stems, words


def written(text: str, language: Language | None = None) -> list[str]:
    return [word.written for word in words(text, language)]


def content(text: str, language: Language | None = None) -> list[str]:
    return [word.written for word in words(text, language) if word.is_content]


def test_words_are_folded_and_lose_what_hangs_on_them() -> None:
    assert stems("The ﬁrst Museum's openings, quickly: 2,5 km") == [
        "the",
        "first",
        "museum",
        "open",
        "quick",
        "2.5",
        "km",
    ]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234; 1.234; 1'234; 1\u202f234; 1 234; 1234", ["1234"] * 6),
        ("2,50 2.5 1.234,5 1,234.50", ["2.5", "2.5", "1234.5", "1234.5"]),
        ("0.125 007 0", ["0.125", "7", "0"]),
        ("१२३४ ٣٫٥ ２０", ["1234", "3.5", "20"]),
        ("12.03.2024 1,2,3 9:05", ["12", "3", "2024", "1", "2", "3", "9", "5"]),
        ("20km 1st H2O", ["20", "km", "1", "st", "H2O"]),
    ],
)
def test_a_number_has_one_form_however_it_is_written(text: str, numbers: list[str]) -> None:
    assert written(text) == numbers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("L'économie d\u2019abord, qu'il n'a", ["économie", "abord", "il", "a"]),
        ("dell'arte all'opera", ["arte", "opera"]),
        ("O'Brien's, it's, they'll", ["OBrien", "it", "they"]),
        ("п'ять", ["пять"]),
    ],
)
def test_what_is_elided_before_a_word_and_hangs_on_it_goes(text: str, said: list[str]) -> None:
    assert written(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("हिन्दी की किताबें", ["हिन्दी", "की", "किताबें"]),
        ("พิพิธภัณฑ์", ["พิพิ", "พิธ", "ธภั", "ภัณ", "ณฑ์"]),
        ("博物館は", ["博物", "物館", "は"]),
        ("2024年にAIが", ["2024", "年", "に", "AI", "が"]),
        ("서울에서 열린", ["서울", "울에", "에서", "열린"]),
        ("ສະບາຍ", ["ສະ", "ະບ", "ບາ", "າຍ"]),
        ("មន្ទីរ", ["មន្ទី", "ន្ទីរ"]),
        ("ပြတိုက်", ["ပြတို", "တိုက်"]),
        ("སྟོན་ཁང་", ["སྟོན", "ཁང"]),
        ("e\u0301t\u00ade", ["éte"]),
    ],
)
def test_words_are_cut_as_their_script_writes_them(text: str, said: list[str]) -> None:
    assert written(text) == said


def test_words_of_grammar_are_known_in_each_language() -> None:
    assert content("Das Museum ist am Montag nicht geöffnet", Language.GERMAN) == ["Museum", "Montag", "geöffnet"]
    assert content("博物館は九時に開きます", Language.JAPANESE) == ["博物", "物館", "九時", "開"]
    assert content("संग्रहालय सुबह खुलता है", Language.HINDI) == ["संग्रहालय", "सुबह", "खुलता"]


@pytest.mark.parametrize(
    ("language", "alike"),
    [
        (Language.GERMAN, "Öffnung Öffnungen öffnet öffnen"),
        (Language.FRENCH, "cheval chevaux"),
        (Language.SPANISH, "abierto abiertos abierta"),
        (Language.HINDI, "किताब किताबें किताबों"),
        (None, "open opens opening"),
    ],
)
def test_forms_of_a_word_have_one_stem(language: Language | None, alike: str) -> None:
    assert len(set(stems(alike, language))) == 1


@given(st.text(), st.sampled_from([None, *Language]))
def test_any_text_has_words_that_are_not_empty(text: str, language: Language | None) -> None:
    found = list(words(text, language))
    assert all(word.written and word.stem for word in found)
    assert [word.stem for word in found] == stems(text, language)
