"""The stem of a word: what stays when its endings go, so that "opens" and "opening" are the same.

Own short lists of endings, taken off longest first. They need not be right as long as they treat the same word alike:
stems are compared, never shown. A language that is not known is treated as English is, whose endings do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from gasp_core.text.grammar_words import GRAMMAR_WORDS
from gasp_core.text.languages import Language, without_accents

_LONGEST_KEPT = 40
_KEPT_STEMS = 50_000


@dataclass(frozen=True, slots=True)
class Inflection:
    """Which endings words take, how many may follow each other, and how many letters a stem has at least."""

    endings: tuple[str, ...]
    shortest_stem: int
    most_endings: int = 1


_ENGLISH = Inflection(
    (
        *("ational", "ations", "ation", "ingly", "edly", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er"),
        *("ely", "ly", "es", "ed", "e", "s", "y"),
    ),
    shortest_stem=3,
)
_INFLECTIONS = {
    Language.ENGLISH: _ENGLISH,
    Language.GERMAN: Inflection(
        ("ung", "end", "est", "en", "em", "er", "es", "et", "st", "te", "e", "n", "s", "t"), 4, most_endings=2
    ),
    Language.DUTCH: Inflection(("heden", "ing", "en", "er", "de", "te", "e", "s", "t", "d"), 4, most_endings=2),
    Language.FRENCH: Inflection(
        (
            *("ations", "ateurs", "ements", "ation", "ateur", "ement", "aient", "erent", "antes", "ante", "ants"),
            *("ees", "ent", "ant", "ait", "ais", "ale", "ees", "eux", "euse", "aux", "ee", "er", "ez", "es", "al"),
            *("ir", "it", "is", "e", "s", "x", "t"),
        ),
        4,
        most_endings=2,
    ),
    Language.SPANISH: Inflection(
        (
            *("aciones", "acion", "amente", "mente", "ieron", "iendo", "ando", "ados", "adas", "idos", "idas"),
            *("aron", "aban", "ado", "ada", "ido", "ida", "aba", "ar", "er", "ir", "es", "os", "as", "an", "en"),
            *("a", "o", "e", "s"),
        ),
        4,
    ),
    Language.ITALIAN: Inflection(
        (
            *("azioni", "azione", "amente", "mente", "ando", "endo", "ati", "ate", "ato", "ata", "iti", "ite", "ito"),
            *("ita", "uti", "uto", "uta", "ute", "are", "ere", "ire", "ano", "ono", "i", "e", "a", "o"),
        ),
        4,
    ),
    Language.PORTUGUESE: Inflection(
        (
            *("acoes", "acao", "amente", "mente", "ando", "endo", "indo", "ados", "adas", "idos", "idas", "aram"),
            *("eram", "iram", "avam", "ado", "ada", "ido", "ida", "ava", "oes", "aes", "ar", "er", "ir", "es", "os"),
            *("as", "am", "em", "a", "o", "e", "s"),
        ),
        4,
    ),
    Language.HINDI: Inflection(
        (
            *("ियों", "ियाँ", "ियां", "ुओं", "ाओं", "ाएं", "ाएँ", "ता", "ते", "ती", "ना", "ने", "नी", "ों", "ें", "ीं"),
            *("ा", "े", "ी", "ो", "ि", "ु", "ू", "ं"),
        ),
        2,
    ),
}
_NONE = Inflection((), 1)
# Two ways to write the same in Hindi: with the dot below a letter or without it, with the moon above it or the dot.
_HINDI = {0x093C: None, 0x0901: 0x0902}


def stem(word: str, language: Language | None) -> str:
    """The stem of a word in lower case. A word of grammar stays whole, and so does what has a digit."""
    # Passages say the same words over and over. What is longer than a word is not kept, so that nobody can fill memory.
    return _kept_stem(word, language) if len(word) <= _LONGEST_KEPT else _stem_anew(word, language)


@cache
def grammar(language: Language | None) -> frozenset[str]:
    """The words of grammar of a language, as ``stem`` gives them."""
    listed = GRAMMAR_WORDS.get(language or Language.ENGLISH, "")
    return frozenset(_bare(word, language) for word in listed.split())


def _stem_anew(word: str, language: Language | None) -> str:
    word = _bare(word, language)
    if word in grammar(language) or any(character.isdigit() for character in word):
        return word
    inflection = _INFLECTIONS.get(language, _NONE) if language is not None else _ENGLISH
    for _ in range(inflection.most_endings):
        word = _without_ending(word, inflection)
    return word


def _bare(word: str, language: Language | None) -> str:
    """The word without accents. In a language that is not known they may be all that tells two words apart."""
    if language is None or word.isascii():
        return word
    return word.translate(_HINDI) if language is Language.HINDI else without_accents(word)


def _without_ending(word: str, inflection: Inflection) -> str:
    for ending in inflection.endings:
        if word.endswith(ending) and len(word) - len(ending) >= inflection.shortest_stem:
            return word.removesuffix(ending)
    return word


_kept_stem = lru_cache(maxsize=_KEPT_STEMS)(_stem_anew)
