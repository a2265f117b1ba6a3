"""What a sentence says that the passages do not: novel words, pairs of words, names and numbers. No model is asked.

A word is a run of letters and digits, folded to one case and one form (NFKC), with what English hangs on it taken
off (``'s``, ``-s``, ``-ing``, ``-ed``, ``-ly`` and the like). Words of grammar count in pairs only. What passages and
question say is known; a pair has to be in a passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from gasp_core.grounding import Exchange

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SUFFIXES = (
    *("ational", "ations", "ation", "ingly", "edly", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er"),
    *("ely", "ly", "es", "ed", "e", "s", "y"),
)
_SHORTEST_STEM = 3
_APOSTROPHE = re.compile("['’]")
_LONGEST_KEPT = 40
_KEPT_STEMS = 50_000
_GRAMMAR_WORDS = """
a about above after again against all also am an and any are as at be because been before being below between
both but by can cannot could did do does doing down during each either else ever every few for from further had
has have having he hence her here hers him his how however i if in into is it its just may me might more most
must my neither no nor not of off often on once only or other our out over own per rather same shall she should
since so some such than that the their them then there therefore these they this those through thus to too under
until up upon very was we were what when where whether which while who whom whose why will with within without
would yet you your
"""
_GRAMMAR = frozenset(_GRAMMAR_WORDS.split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it was written, and its stem."""

    written: str
    stem: str

    @property
    def is_content(self) -> bool:
        """Whether it is no word of grammar."""
        return self.stem not in _GRAMMAR

    @property
    def is_number(self) -> bool:
        """Whether it has a digit."""
        return any(character.isdigit() for character in self.stem)

    @property
    def is_capitalised(self) -> bool:
        """Whether it begins with a capital letter."""
        return self.written[0].isupper()


@dataclass(frozen=True, slots=True)
class Novelty:
    """``words`` and ``pairs`` are shares in [0, 1] of content words and of pairs of neighbours; the others counts.

    A name is a novel word with a capital that does not begin the sentence. A word counts as often as it is said, a
    pair once.
    """

    words: float
    pairs: float
    names: int
    numbers: int


def novelties(exchange: Exchange, texts: Sequence[str]) -> list[Novelty]:
    """The novelty of each text against the exchange's passages and question."""
    passages = [_stems(passage.text) for passage in exchange.passages]
    known = set(_stems(exchange.question)).union(*passages)
    pairs = {pair for stems in passages for pair in pairwise(stems)}
    return [_novelty(list(words(text)), known, pairs) for text in texts]


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text, in order."""
    for written in _written(text):
        yield Word(written, _stem(written))


def _novelty(said: Sequence[Word], known: set[str], pairs: set[tuple[str, str]]) -> Novelty:
    content = [word for word in said if word.is_content]
    novel = [word for word in content if word.stem not in known]
    own = set(pairwise(word.stem for word in said))
    first = said[0] if said else None
    return Novelty(
        words=len(novel) / len(content) if content else 0.0,
        pairs=len(own - pairs) / len(own) if own else 0.0,
        names=sum(word.is_capitalised and word is not first for word in novel),
        numbers=sum(word.is_number for word in novel),
    )


def _written(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def _stems(text: str) -> list[str]:
    return [_stem(written) for written in _written(text)]


def _stem(written: str) -> str:
    # Passages say the same words over and over. What is longer than a word is not kept, so that nobody can fill memory.
    return _kept_stem(written) if len(written) <= _LONGEST_KEPT else _stem_anew(written)


def _stem_anew(written: str) -> str:
    word = _APOSTROPHE.split(written)[0].casefold()
    if word in _GRAMMAR or any(character.isdigit() for character in word):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


_kept_stem = lru_cache(maxsize=_KEPT_STEMS)(_stem_anew)
