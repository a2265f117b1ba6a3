"""Token scores kept on disk, so that the model reads an answer once.

A file per answer under ``<folder>/<scorer identity>/<method>/``, named by what was asked: question, passages, answer.
It is written beside its place and moved there whole, so a run that was broken off goes on where it was; a file that
cannot be read counts as absent. Nothing in it is executed: arrays of numbers, and what is no number as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from gasp_core.array_cache import ArrayCache, digest
from gasp_core.attractor.trajectory import AnswerTrajectories, Trajectory
from gasp_core.grounding import AnswerGrounding, Exchange, Method, Sentence, SentenceSkip
from gasp_core.identity import ScorerIdentity
from gasp_core.packaged import cache_directory
from gasp_core.text.sentences import split_answer
from gasp_core.tokens import AnswerTokens
from gasp_core.tpa.sources import AnswerSources

# Raised when the files change their form: older ones are then not found.
FORM = 4

_GROUNDING = TypeAdapter(AnswerGrounding)
_SKIPS = TypeAdapter(tuple[SentenceSkip | None, ...])


class FeatureCache:
    """What one scorer says of answers, under ``$GASP_CACHE_DIR/features`` unless a folder is given."""

    def __init__(self, identity: ScorerIdentity, folder: Path | None = None) -> None:
        root = (folder or cache_directory() / "features") / digest([FORM, asdict(identity)])
        self._caches = {method: ArrayCache(root / method.value) for method in Method}
        self._sources = ArrayCache(root / "sources")
        self._trajectories = ArrayCache(root / "trajectories")

    def load(self, exchange: Exchange, method: Method) -> AnswerTokens | None:
        """What was kept of this answer, or None."""
        arrays = self._caches[method].load(exchange_key(exchange))
        try:
            return None if arrays is None else _tokens(arrays)
        except (KeyError, ValueError, ValidationError):
            return None

    def store(self, exchange: Exchange, tokens: AnswerTokens) -> None:
        """Keep an answer's scores. Those of leave-one-out have what two passes tell in them."""
        key = exchange_key(exchange)
        self._caches[tokens.grounding.method].store(key, _arrays(tokens))
        if tokens.grounding.method is Method.LEAVE_ONE_OUT:
            self._caches[Method.TWO_PASS].store(key, _arrays(two_pass(tokens)))

    def load_sources(self, exchange: Exchange) -> AnswerSources | None:
        """What was kept of the seven sources of this answer's tokens, or None."""
        arrays = self._sources.load(exchange_key(exchange))
        try:
            return None if arrays is None else _sources(exchange, arrays)
        except (KeyError, ValueError, ValidationError):
            return None

    def store_sources(self, exchange: Exchange, sources: AnswerSources) -> None:
        """Keep the sources of an answer's tokens."""
        self._sources.store(exchange_key(exchange), _source_arrays(sources))

    def load_trajectories(self, exchange: Exchange) -> AnswerTrajectories | None:
        """What was kept of the trajectories of this answer's sentences, or None."""
        arrays = self._trajectories.load(exchange_key(exchange))
        try:
            return None if arrays is None else _trajectories(exchange, arrays)
        except (KeyError, ValueError, ValidationError):
            return None

    def store_trajectories(self, exchange: Exchange, found: AnswerTrajectories) -> None:
        """Keep the trajectories of an answer's sentences."""
        self._trajectories.store(exchange_key(exchange), _trajectory_arrays(found))


def two_pass(tokens: AnswerTokens) -> AnswerTokens:
    """The same answer as two passes know it."""
    sentences = tuple(
        replace(
            sentence,
            drops=(),
            supporting_chunk=None,
            supporting_chunks=(),
            supporting_drop=None,
            unlocated=False,
            contradicting_chunk=None,
        )
        for sentence in tokens.grounding.sentences
    )
    return replace(tokens, grounding=replace(tokens.grounding, method=Method.TWO_PASS, sentences=sentences))


def exchange_key(exchange: Exchange) -> str:
    """A name for what a score depends on beside the scorer: the texts, without the ids of the passages."""
    return digest([exchange.question, [passage.text for passage in exchange.passages], exchange.answer])


def _arrays(tokens: AnswerTokens) -> dict[str, NDArray[Any]]:
    return {
        "grounding": np.frombuffer(_GROUNDING.dump_json(_without_readings(tokens.grounding)), dtype=np.uint8),
        **_reading_arrays(tokens.grounding),
        "spans": np.array(tokens.spans, dtype=np.int32).reshape(-1, 2),
        **_member_arrays(tokens.members),
        "log_probabilities": tokens.log_probabilities,
        "without_context": tokens.without_context,
        "divergences": tokens.divergences,
    }


def _tokens(arrays: Mapping[str, NDArray[Any]]) -> AnswerTokens:
    return AnswerTokens(
        grounding=_with_readings(_GROUNDING.validate_json(arrays["grounding"].tobytes()), arrays),
        spans=_spans(arrays),
        log_probabilities=arrays["log_probabilities"],
        without_context=arrays["without_context"],
        divergences=arrays["divergences"],
        members=_members(arrays),
    )


def _without_readings(grounding: AnswerGrounding) -> AnswerGrounding:
    return replace(grounding, sentences=tuple(replace(one, readings=()) for one in grounding.sentences))


def _reading_arrays(grounding: AnswerGrounding) -> dict[str, NDArray[Any]]:
    """Hundreds of numbers a sentence, which as text would be most of the file."""
    return _list_arrays([one.readings for one in grounding.sentences], "readings", "reading_sizes", np.float32)


def _with_readings(grounding: AnswerGrounding, arrays: Mapping[str, NDArray[Any]]) -> AnswerGrounding:
    readings = _lists(arrays, "readings", "reading_sizes")
    sentences = (replace(one, readings=read) for one, read in zip(grounding.sentences, readings, strict=True))
    return replace(grounding, sentences=tuple(sentences))


def _source_arrays(sources: AnswerSources) -> dict[str, NDArray[Any]]:
    return {
        "skips": np.frombuffer(_SKIPS.dump_json(sources.skips), dtype=np.uint8),
        "spans": np.array(sources.token_spans, dtype=np.int32).reshape(-1, 2),
        **_member_arrays(sources.members),
        "values": sources.values,
    }


def _sources(exchange: Exchange, arrays: Mapping[str, NDArray[Any]]) -> AnswerSources:
    return AnswerSources(
        answer=exchange.answer,
        sentences=split_answer(exchange.answer),
        members=_members(arrays),
        skips=_SKIPS.validate_json(arrays["skips"].tobytes()),
        token_spans=_spans(arrays),
        values=arrays["values"],
    )


def _trajectory_arrays(found: AnswerTrajectories) -> dict[str, NDArray[Any]]:
    """A sentence without a trajectory has one of no steps here. The sentences are those that it was cut into."""
    products = [np.zeros((0, 0)) if one is None else one.products for one in found.trajectories]
    return {
        "skips": np.frombuffer(_SKIPS.dump_json(found.skips), dtype=np.uint8),
        "sentences": _sentence_spans(found.sentences),
        "norms": np.array([np.nan if one is None else one.norm for one in found.trajectories]),
        "steps": np.array([len(one) for one in products], dtype=np.int32),
        "products": np.array([number for one in products for number in one.ravel()], dtype=np.float64),
    }


def _trajectories(exchange: Exchange, arrays: Mapping[str, NDArray[Any]]) -> AnswerTrajectories:
    skips = _SKIPS.validate_json(arrays["skips"].tobytes())
    steps = arrays["steps"].tolist()
    bounds = pairwise(accumulate((count**2 for count in steps), initial=0))
    sentences = split_answer(exchange.answer)
    if not np.array_equal(arrays["sentences"], _sentence_spans(sentences)):
        raise ValueError("of an answer that was cut otherwise")
    return AnswerTrajectories(
        sentences=sentences,
        skips=skips,
        trajectories=tuple(
            Trajectory(norm, arrays["products"][start:end].reshape(count, count)) if skip is None else None
            for skip, norm, count, (start, end) in zip(skips, arrays["norms"].tolist(), steps, bounds, strict=True)
        ),
    )


def _sentence_spans(sentences: Sequence[Sentence]) -> NDArray[np.int32]:
    return np.array([(one.start, one.end) for one in sentences], dtype=np.int32).reshape(-1, 2)


def _spans(arrays: Mapping[str, NDArray[Any]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in arrays["spans"].tolist())


def _member_arrays(members: Sequence[Sequence[int]]) -> dict[str, NDArray[Any]]:
    return _list_arrays(members, "members", "sizes", np.int32)


def _members(arrays: Mapping[str, NDArray[Any]]) -> tuple[tuple[int, ...], ...]:
    return _lists(arrays, "members", "sizes")


def _list_arrays(lists: Sequence[Sequence[float]], values: str, sizes: str, dtype: type) -> dict[str, NDArray[Any]]:
    """Lists of different lengths as one array, and their lengths."""
    return {
        values: np.array([value for one in lists for value in one], dtype=dtype),
        sizes: np.array([len(one) for one in lists], dtype=np.int32),
    }


def _lists(arrays: Mapping[str, NDArray[Any]], values: str, sizes: str) -> tuple[tuple[Any, ...], ...]:
    """What ``_list_arrays`` was given."""
    flat = arrays[values].tolist()
    bounds = accumulate(arrays[sizes].tolist(), initial=0)
    return tuple(tuple(flat[start:end]) for start, end in pairwise(bounds))
