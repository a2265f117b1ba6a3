"""Whether the supporting chunk is the one that says what the sentence says.

Nobody labelled which chunk supports a sentence. What stands in for that is the chunk that matches the sentence best
by words or by meaning: another notion of support, no truth. Asked of grounded sentences whose answer has two groups of
chunks or more; chunks that say nearly the same are one group and count as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gasp_core.arrays import Floats
from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.evaluation.bootstrap import Resamples, interval, resample, weighted_mean
from gasp_core.evaluation.data import LabelledAnswer
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.evaluation.ranking import Entry, Json
from gasp_core.grounding import AnswerGrounding, Exchange, SentenceGrounding
from gasp_core.text.languages import language_of
from gasp_core.text.words import words

# Of a sentence and the texts of chunks, how alike each is to the sentence (n,); 0 or less is not at all.
Match: TypeAlias = Callable[[str, Sequence[str]], Floats]
_TELLING_PASSAGES = 20  # that tell the language of all


@dataclass(frozen=True, slots=True)
class Support:
    """Which group of chunks supports one sentence, by each notion; None where it names none.

    ``source`` is the place of its source. ``first`` is the group of the first chunk, of ``n_groups``.
    """

    source: int
    supporting: int | None
    masked: int | None
    matches: Mapping[str, int | None]
    first: int
    n_groups: int


def lexical_match(exchanges: Iterable[Exchange]) -> Match:
    """Cosine of TF-IDF over stems of content words (sublinear counts), learned from all passages."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # seconds to import

    texts = list(dict.fromkeys(passage.text for exchange in exchanges for passage in exchange.passages))
    language = language_of("\n".join(texts[:_TELLING_PASSAGES]))

    def content_stems(text: str) -> list[str]:
        return [word.stem for word in words(text, language) if word.is_content]

    vectorizer: Any = TfidfVectorizer(analyzer=content_stems, sublinear_tf=True)
    vectorizer.fit(texts)

    def match(sentence: str, chunks: Sequence[str]) -> Floats:
        cosines: Floats = (vectorizer.transform(chunks) @ vectorizer.transform([sentence]).T).toarray()[:, 0]
        return cosines

    return match


def embedding_match(embed: Callable[[Sequence[str]], Floats]) -> Match:
    """Cosine of embeddings."""

    def match(sentence: str, chunks: Sequence[str]) -> Floats:
        vectors = embed([sentence, *chunks])
        cosines: Floats = vectors[1:] @ vectors[0]
        return cosines

    return match


def supports(
    answers: Sequence[LabelledAnswer],
    exact: Iterable[AnswerEvidence],
    masked: Iterable[AnswerEvidence] | None,
    matches: Mapping[str, Match],
) -> Iterator[Support]:
    """Yield the support of every grounded sentence that leave-one-out was done for."""
    places = _places(answers)
    others: Iterable[AnswerEvidence | None] = masked if masked is not None else [None] * len(answers)
    for answer, evidence, other in zip(answers, exact, others, strict=True):
        if evidence.leave_one_out is not None:
            approximate = other.leave_one_out if other else None
            yield from _supports(answer, places[answer.source], evidence.leave_one_out, approximate, matches)


def agreement(answers: Sequence[LabelledAnswer], found: Sequence[Support], *, n_resamples: int, seed: int) -> Entry:
    """How often the supporting chunk is the one that matches best, beside the first chunk and one at random.

    Shares and differences are [value, low, high], with intervals by source.
    """
    resamples = resample(len(_places(answers)), n_resamples, seed)
    reacting = [one for one in found if one.supporting is not None]
    names = dict.fromkeys(name for one in found for name in one.matches)
    entry: Entry = {"n_grounded": len(found), "without_reaction": len(found) - len(reacting)}
    entry |= {name: _agreement(name, reacting, resamples) for name in names}
    both = [one for one in reacting if one.masked is not None]
    same = np.array([one.supporting == one.masked for one in both], dtype=np.float64)
    entry["masked"] = {"n": len(both), "same_chunk": _share(same, both, resamples)} if both else None
    return entry


def _agreement(name: str, reacting: Sequence[Support], resamples: Resamples) -> Entry:
    asked = [one for one in reacting if one.matches[name] is not None]
    ours = np.array([one.supporting == one.matches[name] for one in asked], dtype=np.float64)
    first = np.array([one.first == one.matches[name] for one in asked], dtype=np.float64)
    chance = np.array([1 / one.n_groups for one in asked], dtype=np.float64)
    return {
        "n": len(asked),
        "supporting_chunk": _share(ours, asked, resamples),
        "first_chunk": _share(first, asked, resamples),
        "random_chunk": _share(chance, asked, resamples),
        "vs_first": _share(ours - first, asked, resamples),
        "vs_random": _share(ours - chance, asked, resamples),
    }


def _share(values: Floats, asked: Sequence[Support], resamples: Resamples) -> list[Json] | None:
    source_of = np.array([one.source for one in asked], dtype=np.intp)
    if not len(values):
        return None
    found = interval(resamples.values(weighted_mean, np.zeros(len(values), dtype=bool), values, source_of))
    return None if found is None else [float(values.mean()), found.low, found.high]


def _supports(
    answer: LabelledAnswer,
    source: int,
    exact: AnswerGrounding,
    masked: AnswerGrounding | None,
    matches: Mapping[str, Match],
) -> Iterator[Support]:
    labels = sentence_labels(answer, [one.sentence for one in exact.sentences])
    for at, (one, label) in enumerate(zip(exact.sentences, labels, strict=True)):
        groups = [exact.chunks[drop.chunk].group for drop in one.drops]
        if label.unsupported is not False or len(set(groups)) < 2:
            continue
        text = answer.exchange.answer[one.sentence.start : one.sentence.end]
        chunks = [_chunk_text(answer.exchange, exact, drop.chunk) for drop in one.drops]
        yield Support(
            source=source,
            supporting=_group(exact, one),
            masked=_group(masked, masked.sentences[at]) if masked else None,
            matches={name: _best(match(text, chunks), groups) for name, match in matches.items()},
            first=groups[0],
            n_groups=len(set(groups)),
        )


def _chunk_text(exchange: Exchange, grounding: AnswerGrounding, chunk: int) -> str:
    place = grounding.chunks[chunk]
    return exchange.passages[place.passage].text[place.start : place.end]


def _group(grounding: AnswerGrounding, sentence: SentenceGrounding) -> int | None:
    return None if sentence.supporting_chunk is None else grounding.chunks[sentence.supporting_chunk].group


def _best(likeness: Floats, groups: Sequence[int]) -> int | None:
    best = int(likeness.argmax())
    return groups[best] if likeness[best] > 0 else None


def _places(answers: Sequence[LabelledAnswer]) -> dict[str, int]:
    return {source: at for at, source in enumerate(dict.fromkeys(answer.source for answer in answers))}
