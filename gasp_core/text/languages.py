"""Which language a text is in, told by its script and its words of grammar.

A language is supported if its words can be compared: how they are cut is known for every script, and for these
languages also what words of grammar are and which endings words take. The languages that look most like a supported
one are known by their own commonest words, so that Catalan is not taken for Spanish.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from gasp_core.text import scripts
from gasp_core.text.grammar_words import GRAMMAR_WORDS, UNSUPPORTED

_SAMPLE = 3_000  # characters that are looked at
_LEAST_LETTERS = 4
# Shares of the letters or words that are looked at.
_OTHER_SCRIPT = 0.4  # of letters beyond Latin, Greek and Cyrillic: then the script tells
_HIRAGANA, _KANA = 0.05, 0.4  # of Japanese letters: Chinese that names a Japanese thing has fewer
_GRAMMAR_SHARE = 0.12
_LEAST_GRAMMAR = 2  # words
_BEYOND = re.compile("[^\\W\\d_\u0000-\u05cf]")
_WORD = re.compile(rf"[^\W\d_]+(?:[{scripts.MARKS}]++[^\W\d_]*+)*+")
_ACCENTS = re.compile("[\u0300-\u036f]")


class Language(StrEnum):
    """A supported language, by its code in ISO 639-1."""

    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"
    SPANISH = "es"
    ITALIAN = "it"
    PORTUGUESE = "pt"
    DUTCH = "nl"
    HINDI = "hi"
    JAPANESE = "ja"
    CHINESE = "zh"
    KOREAN = "ko"
    THAI = "th"
    LAO = "lo"
    BURMESE = "my"
    KHMER = "km"
    TIBETAN = "bo"


_SUPPORTED = frozenset(Language)
# Letters beyond those of English that a language writes; of two that are as likely the one without strange letters.
_LETTERS: dict[str, str] = {
    Language.ENGLISH: "",
    Language.GERMAN: "äöüß",
    Language.FRENCH: "àâæçéèêëîïôœùûüÿ",
    Language.SPANISH: "áéíñóúü",
    Language.ITALIAN: "àèéìîòù",
    Language.PORTUGUESE: "áàâãçéêíóôõú",
    Language.DUTCH: "ëïéèöü",
}
_SCRIPTS = {
    Language.THAI: scripts.THAI,
    Language.LAO: scripts.LAO,
    Language.BURMESE: scripts.BURMESE,
    Language.KHMER: scripts.KHMER,
    Language.TIBETAN: scripts.TIBETAN,
    Language.KOREAN: scripts.HANGUL,
    Language.HINDI: scripts.DEVANAGARI,
    Language.CHINESE: f"{scripts.HAN}{scripts.HIRAGANA}{scripts.KATAKANA}",
}


# The codes of scripts in ISO 15924, by the first word of the names that Unicode has for their letters.
_SCRIPT_CODES = {
    "CYRILLIC": "Cyrl",
    "GREEK": "Grek",
    "ARABIC": "Arab",
    "HEBREW": "Hebr",
    "ARMENIAN": "Armn",
    "GEORGIAN": "Geor",
    "ETHIOPIC": "Ethi",
    "DEVANAGARI": "Deva",
    "BENGALI": "Beng",
    "GURMUKHI": "Guru",
    "GUJARATI": "Gujr",
    "ORIYA": "Orya",
    "TAMIL": "Taml",
    "TELUGU": "Telu",
    "KANNADA": "Knda",
    "MALAYALAM": "Mlym",
    "SINHALA": "Sinh",
    "MONGOLIAN": "Mong",
}


@dataclass(frozen=True, slots=True)
class ToldLanguage:
    """What a text tells of its language: a tag (BCP 47) and whether the language is supported.

    The tag of one that is not supported is its code if it is one of those that look most like a supported one, else
    ``und`` with the script (``und-Cyrl``), or alone if that is Latin or the text is too short to tell.
    """

    tag: str
    is_supported: bool


UNTOLD = ToldLanguage("und", is_supported=False)


def language_of(text: str) -> Language | None:
    """The language of a text, or None if it is not supported or the text is too short to tell.

    Looks at the first 3,000 characters. A text of several languages is taken for the one that it has most of.
    """
    code = _code(text[:_SAMPLE])
    return Language(code) if code in _SUPPORTED else None


def told_language(text: str) -> ToldLanguage:
    """What a text tells of its language, by its first 3,000 characters."""
    sample = text[:_SAMPLE]
    code = _code(sample)
    return _by_letters(sample) if code is None else ToldLanguage(code, is_supported=code in _SUPPORTED)


def _code(sample: str) -> str | None:
    """The code of a language that is known, supported or not."""
    beyond = [] if sample.isascii() else _BEYOND.findall(sample)
    if len(beyond) >= _LEAST_LETTERS and len(beyond) >= _OTHER_SCRIPT * sum(map(str.isalpha, sample)):
        return _by_script("".join(beyond), sample)
    return _by_grammar(sample)


def _by_letters(sample: str) -> ToldLanguage:
    """The script that most of the letters are of, if it is one without a supported language."""
    letters = [letter for letter in sample if letter.isalpha()]
    counts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters if letter > "\x7f")
    ((name, count),) = counts.most_common(1) or [("", 0)]
    if count < _LEAST_LETTERS or 2 * count < len(letters) or name not in _SCRIPT_CODES:
        return UNTOLD
    return ToldLanguage(f"{UNTOLD.tag}-{_SCRIPT_CODES[name]}", is_supported=False)


def without_accents(text: str) -> str:
    """The text with its letters bare: ``é`` is ``e``, ``ä`` is ``a``."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _by_script(letters: str, sample: str) -> str | None:
    counts = Counter({language: len(pattern.findall(letters)) for language, pattern in _script_patterns().items()})
    ((language, count),) = counts.most_common(1)
    if 2 * count < len(letters):
        return None
    if language is Language.CHINESE:
        hiragana, katakana = (len(re.findall(f"[{kana}]", letters)) for kana in (scripts.HIRAGANA, scripts.KATAKANA))
        is_japanese = hiragana >= _HIRAGANA * count or hiragana + katakana >= _KANA * count
        return Language.JAPANESE if is_japanese else language
    # Others are written in the letters of Hindi, too.
    return _by_grammar(sample) if language is Language.HINDI else language


def _by_grammar(sample: str) -> str | None:
    text = scripts.folded(sample).casefold()
    beyond_ascii = Counter(letter for letter in text if letter > "\x7f") if not text.isascii() else Counter()
    words = _WORD.findall(without_accents(text))
    known = _languages_by_word()
    hits = Counter(language for word in words for language in known.get(word, ()))
    ranked = sorted((count, -_strange_letters(beyond_ascii, language), language) for language, count in hits.items())
    if not ranked or (len(ranked) > 1 and ranked[-1][:2] == ranked[-2][:2]):
        return None
    count, _, best = ranked[-1]
    return best if count >= max(_least_grammar(best), _GRAMMAR_SHARE * len(words)) else None


def _strange_letters(letters: Counter[str], language: str) -> int:
    """How many of these letters a language does not write, as far as its letters are known."""
    known = _LETTERS.get(language)
    return 0 if known is None else sum(n for letter, n in letters.items() if letter.isalpha() and letter not in known)


def _least_grammar(language: str) -> int:
    """How many words of grammar tell a language. Few languages write the letters of Hindi."""
    return 1 if language == Language.HINDI else _LEAST_GRAMMAR


@cache
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    """Each word of grammar, without accents, with the languages that it is one of."""
    found: dict[str, tuple[str, ...]] = {}
    for language, words in (GRAMMAR_WORDS | UNSUPPORTED).items():
        for word in sorted(set(without_accents(words).split())):
            found[word] = (*found.get(word, ()), language)
    return found


@cache
def _script_patterns() -> dict[Language, re.Pattern[str]]:
    return {language: re.compile(f"[{letters}]") for language, letters in _SCRIPTS.items()}
