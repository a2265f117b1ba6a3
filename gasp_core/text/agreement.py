"""How a sentence agrees with the passage sentences that support it. No model is asked.

Counting what no passage says misses what a passage says of something else: a number of another row, a month of another
event. So a sentence is held against two sentences of the passages, the one that has most of its content words and the
one that has most of the others, and what these do not have is counted, though another sentence may have it. One alone,
or one with its neighbours, or all passages find less (docs/evaluation.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from gasp_core.grounding import Exchange
from gasp_core.text.facts import Facts, facts
from gasp_core.text.languages import Language
from gasp_core.text.lexical import exchange_language
from gasp_core.text.references import without_references
from gasp_core.text.sentences import split_answer
from gasp_core.text.words import Word, words

# Of each word of a sentence, how many passage sentences are looked at: the rarest words first, all of them in an
# exchange of usual size. Of each pair of words, how many places. Both bound the work for each word of an answer.
_SENTENCES_PER_WORD = 64
_PLACES_PER_PAIR = 16
_TRIPLE = 3
# Directions, in the order of the fields: 1 where more of it is more grounded, -1 where it is more suspicious.
DIRECTIONS = {
    "coverage": 1,
    "numbers": -1,
    "dates": -1,
    "units": -1,
    "names": -1,
    "negation": -1,
    "copied": 1,
    "triples": -1,
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A sentence against the passages.

    ``coverage`` in [0, 1] is the share of its different content words that the best passage sentence has. ``numbers``,
    ``dates`` (months, days of the week, years), ``units`` and ``names`` count what it says and its support does not;
    ``negation`` is 1 if it denies something and its support nothing, or the other way round. A sentence without a
    content word that any passage has is supported by nothing. ``copied`` in [0, 1] is the share of its words in the
    longest run of words that it has in common with a passage, ``triples`` the share of its different runs of three
    words that no passage has. Words are compared by their stems.
    """

    coverage: float
    numbers: int
    dates: int
    units: int
    names: int
    negation: int
    copied: float
    triples: float


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a passage sentence has."""

    stems: frozenset[str]
    facts: Facts


@dataclass(slots=True)
class _Passages:
    """The sentences of all passages; where each content word stands; where each pair of words; all triples."""

    language: Language | None
    sentences: list[str] = field(default_factory=list)
    of_word: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    of_pair: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    triples: set[tuple[str, ...]] = field(default_factory=set)
    _evidence: dict[int, _Evidence] = field(default_factory=dict)

    def evidence(self, sentence: int) -> _Evidence:
        """What a sentence has, read when it is asked for the first time."""
        if sentence not in self._evidence:
            text = self.sentences[sentence]
            said = list(words(text, self.language))
            found = _Evidence(frozenset(word.stem for word in said), facts(text, said, self.language))
            self._evidence[sentence] = found
        return self._evidence[sentence]


def agreements(exchange: Exchange, texts: Sequence[str]) -> list[Agreement]:
    """The agreement of each text, in order. Takes time linear in the passages and the texts, and raises nothing."""
    passages = _indexed(exchange)
    return [_agreement(without_references(text), passages) for text in texts]


def _indexed(exchange: Exchange) -> _Passages:
    passages = _Passages(exchange_language(exchange))
    place = 0
    for passage in exchange.passages:
        stems: list[str] = []
        for span in split_answer(passage.text):
            text = passage.text[span.start : span.end]
            said = list(words(text, passages.language))
            for stem in dict.fromkeys(word.stem for word in said if word.is_content):
                passages.of_word[stem].append(len(passages.sentences))
            passages.sentences.append(text)
            stems.extend(word.stem for word in said)
        place = _with_runs(stems, place, passages)
    return passages


def _with_runs(stems: Sequence[str], place: int, passages: _Passages) -> int:
    """Enter the pairs and triples of a passage, from a place on; gives the place of the next one."""
    for at, pair in enumerate(pairwise(stems), place):
        places = passages.of_pair.setdefault(pair, [])
        if len(places) < _PLACES_PER_PAIR:
            places.append(at)
    passages.triples.update(_triples(stems))
    return place + len(stems) + 1  # so that no run goes on from one passage to the next


def _agreement(text: str, passages: _Passages) -> Agreement:
    said = list(words(text, passages.language))
    stems = [word.stem for word in said]
    content = {word.stem for word in said if word.is_content}
    own = set(_triples(stems))
    support = _support(content, passages)
    numbers, dates, units, names, negation = _conflicts(text, said, support, passages.language)
    coverage = len(content & support[0].stems) / len(content) if support else 0.0
    return Agreement(
        coverage=coverage,
        numbers=numbers,
        dates=dates,
        units=units,
        names=names,
        negation=negation,
        copied=_longest_run(stems, passages) / len(stems) if stems else 0.0,
        triples=len(own - passages.triples) / len(own) if own else 1 - coverage,
    )


def _support(content: set[str], passages: _Passages) -> list[_Evidence]:
    """The passage sentence with most of the words, and the one with most of the others, if any has one."""
    best = _best(content, passages)
    if best is None:
        return []
    second = _best(content - best.stems, passages)
    return [best] if second is None else [best, second]


def _best(content: set[str], passages: _Passages) -> _Evidence | None:
    """The passage sentence with most of the words, the first of several."""
    counts: Counter[int] = Counter()
    left = _SENTENCES_PER_WORD * len(content)
    for places in sorted((passages.of_word[stem] for stem in content if stem in passages.of_word), key=len):
        counts.update(places[:left])
        left -= len(places)
        if left <= 0:
            break
    if not counts:
        return None
    return passages.evidence(min(counts, key=lambda sentence: (-counts[sentence], sentence)))


def _conflicts(
    text: str, said: Sequence[Word], support: Sequence[_Evidence], language: Language | None
) -> tuple[int, int, int, int, int]:
    """How many numbers, dates, units and names the support does not have, and whether one of the two denies."""
    ours, theirs = facts(text, said, language), [evidence.facts for evidence in support]
    names = {word.stem for word in said[1:] if word.is_content and word.is_capitalised}
    return (
        len(ours.numbers.difference(*(one.numbers for one in theirs))),
        len(ours.dates.difference(*(one.dates for one in theirs))),
        len(ours.units.difference(*(one.units for one in theirs))),
        len(names.difference(*(evidence.stems for evidence in support))),
        int(bool(theirs) and ours.negates != any(one.negates for one in theirs)),
    )


def _longest_run(stems: Sequence[str], passages: _Passages) -> int:
    """How many words the longest run of words has that a passage has, too; 0 if not even two words."""
    longest = 0
    ends: dict[int, int] = {}  # of the runs that end at the word before: their place in the passages, their length
    for pair in pairwise(stems):
        ends = {place + 1: ends.get(place, 1) + 1 for place in passages.of_pair.get(pair, ())}
        longest = max(longest, *ends.values()) if ends else longest
    return longest


def _triples(stems: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return (tuple(stems[start : start + _TRIPLE]) for start in range(len(stems) - _TRIPLE + 1))
