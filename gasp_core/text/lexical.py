"""What a sentence says that the passages do not: novel words, pairs of words, names and numbers. No model is asked.

``gasp_core.text.words`` says what a word is in which script. Words of grammar count in pairs only. What passages and
question say is known; a pair has to be in a passage. The language is that of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from gasp_core.grounding import Exchange
from gasp_core.text.languages import UNTOLD, Language, ToldLanguage, language_of, told_language
from gasp_core.text.references import without_references
from gasp_core.text.words import Word, stems, words

# In these languages words are put together: what joins two of them, and how short a part may be.
_COMPOUNDING = frozenset({Language.GERMAN, Language.DUTCH})
_JOINTS = ("", "s", "n", "e")
_SHORTEST_PART = 4
_LONGEST_COMPOUND = 40
_FIRST_PASSAGES = 5


@dataclass(frozen=True, slots=True)
class Novelty:
    """``words`` and ``pairs`` are shares in [0, 1] of content words and of pairs of neighbours; the others counts.

    A name is a novel word with a capital that does not begin the sentence; in German that is any noun. A word counts
    as often as it is said, a pair once. A text of one word has no pair, and its share of words instead.
    """

    words: float
    pairs: float
    names: int
    numbers: int


@dataclass(frozen=True, slots=True)
class _Known:
    """The stems of passages and question, and the pairs of stems that the passages have."""

    stems: set[str]
    pairs: set[tuple[str, str]]
    language: Language | None

    def has(self, word: Word) -> bool:
        if word.stem in self.stems:
            return True
        return self.language in _COMPOUNDING and _is_compound(word.stem, self.stems)


def novelties(exchange: Exchange, texts: Sequence[str]) -> list[Novelty]:
    """The novelty of each text against the exchange's passages and question. Takes time linear in all of them."""
    language = exchange_language(exchange)
    passages = [stems(passage.text, language) for passage in exchange.passages]
    known = _Known(
        stems=set(stems(exchange.question, language)).union(*passages),
        pairs={pair for passage in passages for pair in pairwise(passage)},
        language=language,
    )
    return [_novelty(list(words(without_references(text), language)), known) for text in texts]


def exchange_language(exchange: Exchange) -> Language | None:
    """The language of the answer; where that is too short to tell, of question and passages."""
    return language_of(exchange.answer) or language_of(_asked(exchange))


def told_language_of(exchange: Exchange) -> ToldLanguage:
    """The same, and what is told of a language that is not supported: the word terms of its sentences say little."""
    answer = told_language(exchange.answer)
    if answer.is_supported:
        return answer
    asked = told_language(_asked(exchange))
    return asked if asked.is_supported or answer == UNTOLD else answer


def _asked(exchange: Exchange) -> str:
    passages = (passage.text for passage in islice(exchange.passages, _FIRST_PASSAGES))
    return "\n".join((exchange.question, *passages))


def _novelty(said: Sequence[Word], known: _Known) -> Novelty:
    content = [word for word in said if word.is_content]
    novel = [word for word in content if not known.has(word)]
    first = said[0] if said else None
    own = set(pairwise(word.stem for word in said))
    share = len(novel) / len(content) if content else 0.0
    return Novelty(
        words=share,
        pairs=len(own - known.pairs) / len(own) if own else share,
        names=sum(word.is_capitalised and word is not first for word in novel),
        numbers=sum(word.is_number for word in novel),
    )


def _is_compound(stem: str, known: set[str]) -> bool:
    """Whether a stem is two known ones, with what joins them."""
    if not 2 * _SHORTEST_PART <= len(stem) <= _LONGEST_COMPOUND:
        return False
    cuts = range(_SHORTEST_PART, len(stem) - _SHORTEST_PART + 1)
    return any(stem[:cut] in known and _is_joined(stem[cut:], known) for cut in cuts)


def _is_joined(end: str, known: set[str]) -> bool:
    return any(end.startswith(joint) and end[len(joint) :] in known for joint in _JOINTS)
