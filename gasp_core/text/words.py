"""The words of a text in any script.

* In scripts with blanks a word is a run of letters, digits and the marks on them. What is elided before a word is taken
  off (``l'économie``, ``dell'arte``), and so is what English hangs on it (``'s``, ``'ll``).
* In scripts without blanks, and in Korean, the words are the pairs of neighbouring characters: those of a run of
  characters of one kind (in Japanese: kanji, katakana, hiragana), each with its marks. A run of one is a word.
* A number is a word, in one form: ``1,234``, ``1.234``, ``1 234`` and ``१२३४`` are 1234, ``2,50`` is 2.5, and the
  letters behind it are a word of their own (``20km``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from gasp_core.text import scripts
from gasp_core.text.languages import Language
from gasp_core.text.stems import grammar, stem

_APOSTROPHES = "'’ʼ‘"
# A digit is a letter to Python; numbers come first, so that no word begins with one.
_NUMBER = r"(?<!\d)\d{1,3}(?: \d{3})++(?!\d)|\d++(?:[.,'’٫٬]\d++)*+"
_LETTERS = rf"[^\W_{scripts.UNSPACED}]++(?:[{scripts.MARKS}]++[^\W_{scripts.UNSPACED}]*+)*+"
_RUNS = (
    rf"[{scripts.HAN}]++|[{scripts.HIRAGANA}\u30fc]++|[{scripts.KATAKANA}]++"
    rf"|(?:[{scripts.UNSPACED}][{scripts.UNSPACED_MARKS}]*+)++"
)
_TOKEN = re.compile(rf"{_NUMBER}|{_RUNS}|{_LETTERS}(?:[{_APOSTROPHES}]{_LETTERS})*+")
# In Khmer and Burmese a sign hangs the next consonant on the one before.
_CHARACTER = re.compile(rf"[{scripts.UNSPACED}](?:[\u17d2\u1039].|[{scripts.UNSPACED_MARKS}])*+")
_FIRST_UNSPACED = "\u0e00"
_UNSPACED = re.compile(f"[{scripts.UNSPACED}]")
_APOSTROPHE = re.compile(f"[{_APOSTROPHES}]")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:([ .,'’٬])\d{3})(?:\1\d{3})*")
_DECIMAL = re.compile(r"(\d[\d .,'’٬]*)[.,٫](\d+)")
_DIGITS = re.compile(r"\d+")

_ENGLISH_ENDINGS = frozenset({"s", "t", "ll", "re", "ve", "d", "m"})
_ELISIONS = frozenset(
    "l d j m t s n c qu jusqu lorsqu puisqu quoiqu presqu quelqu dell nell sull dall all coll un quest quell "  # noqa: SIM905 - read as words
    "sant bell gl tutt senz anch com dov cos".split()
)
# Pairs of hiragana that are endings, particles and auxiliaries, and characters of Chinese grammar.
_KANA_GRAMMAR = re.compile(f"[{scripts.HIRAGANA}]")
_HAN_GRAMMAR = frozenset("的了是在和与及也都就而被把吗呢吧着與個个")


class Word(NamedTuple):  # as a dataclass it would take three times as long to make
    """A word as it was written, its stem, and whether it is no word of grammar."""

    written: str
    stem: str
    is_content: bool

    @property
    def is_number(self) -> bool:
        """Whether it has a digit."""
        return any(character.isdigit() for character in self.stem)

    @property
    def is_capitalised(self) -> bool:
        """Whether it begins with a capital letter."""
        return self.written[0].isupper()


def words(text: str, language: Language | None = None) -> Iterator[Word]:
    """Yield the words of a text, in order; their stems and which are grammar by the rules of a language.

    Takes time linear in the length of the text and raises nothing.
    """
    known = grammar(language)
    for written, folded in _written(text):
        stemmed = stem(folded, language)
        yield Word(written, stemmed, stemmed not in known and not _is_grammar(folded, language))


def stems(text: str, language: Language | None = None) -> list[str]:
    """The stems of the words of a text, in order."""
    return [stem(folded, language) for _, folded in _written(text)]


def _written(text: str) -> Iterator[tuple[str, str]]:
    """Each word as it was written, and what is compared of it, in lower case."""
    for token in _TOKEN.findall(scripts.folded(text)):
        first = token[0]
        if first.isdigit():
            yield from ((number, number) for number in _numbers(token))
        elif first >= _FIRST_UNSPACED and _UNSPACED.match(first):
            yield from ((pair, pair) for pair in _pairs(token))
        else:
            written = token if token.isalnum() else _without_apostrophes(token)
            yield written, written.casefold()


def _pairs(run: str) -> list[str]:
    characters = _CHARACTER.findall(run)
    return [before + after for before, after in pairwise(characters)] or characters


def _without_apostrophes(token: str) -> str:
    """The word without what is elided before it and what English hangs on it."""
    parts = _APOSTROPHE.split(token)
    first, last = 0, len(parts)
    while first < last - 1 and parts[first].casefold() in _ELISIONS:
        first += 1
    while first < last - 1 and parts[last - 1].casefold() in _ENGLISH_ENDINGS:
        last -= 1
    return "".join(parts[first:last])


def _numbers(token: str) -> list[str]:
    """The numbers of a token such as ``1,234.5`` or ``12.03.2024``, each in its one form."""
    plain = token if token.isascii() else "".join(map(_ascii_digit, token))
    if plain.isdigit():
        return [_plain(plain)]
    if _THOUSANDS.fullmatch(plain):
        return ["".join(_DIGITS.findall(plain))]
    decimal = _DECIMAL.fullmatch(plain)
    if decimal and (decimal[1].isdigit() or _THOUSANDS.fullmatch(decimal[1])):
        whole, part = _plain("".join(_DIGITS.findall(decimal[1]))), decimal[2].rstrip("0")
        return [f"{whole}.{part}" if part else whole]
    return [_plain(number) for number in _DIGITS.findall(plain)]


def _plain(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _ascii_digit(character: str) -> str:
    return str(unicodedata.decimal(character)) if character.isdecimal() else character


def _is_grammar(word: str, language: Language | None) -> bool:
    """Whether a pair of characters is one of grammar."""
    if language is Language.JAPANESE:
        return _KANA_GRAMMAR.match(word) is not None
    return language is Language.CHINESE and not _HAN_GRAMMAR.isdisjoint(word)
