"""What is usual of one scorer: the mean and the deviation of what it says of the sentences of the reference set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Protocol, TypeAlias

import numpy as np

from gasp_core.array_cache import ArrayCache, digest
from gasp_core.arrays import Floats
from gasp_core.detectors import fused_model
from gasp_core.detectors.detector import Figures
from gasp_core.detectors.fused_model import DIRECTIONS, fused_features
from gasp_core.detectors.standard import reference
from gasp_core.detectors.standard.reference import PACKAGED_FIGURES, reference_exchanges
from gasp_core.errors import ModelNotFound, ModelUnsupported
from gasp_core.grounding import AnswerGrounding, Exchange
from gasp_core.identity import ScorerIdentity
from gasp_core.packaged import cache_directory

# A scorer under narrow limits, or with a small window, reads fewer of them than all; these at least have to be read.
MIN_SENTENCES = 20


# Yields the exchanges, and shows meanwhile how far that is.
Track: TypeAlias = Callable[[Sequence[Exchange]], Iterable[Exchange]]


class ReadsExchanges(Protocol):
    """A scorer, as far as it is needed here."""

    @property
    def identity(self) -> ScorerIdentity:
        """Everything that the scores depend on."""
        ...

    def score(self, exchanges: Sequence[Exchange], /) -> list[AnswerGrounding]:
        """Score each answer after two passes, in order."""
        ...


def figures_of(scorer: ReadsExchanges, track: Track = iter) -> Figures:
    """The scorer's figures, for which it reads the set once: they are kept under ``$GASP_CACHE_DIR/figures``.

    Where nothing can be kept it reads the set every time. Raises ModelUnsupported if it scores too few sentences, and
    ModelOutOfMemory.
    """
    cache = _cache()
    key = digest([reference.VERSION, fused_model.VERSION, asdict(scorer.identity)])
    kept = cache.load(key) if cache else None
    if kept is not None and kept.get("figures", np.empty(0)).shape == (len(PACKAGED_FIGURES), 2):
        return _named(kept["figures"])
    figures = _measured(scorer, track)
    if cache:
        with suppress(OSError):
            cache.store(key, {"figures": figures})
    return _named(figures)


def _cache() -> ArrayCache | None:
    """None for a user without a home."""
    try:
        return ArrayCache(cache_directory() / "figures")
    except ModelNotFound:
        return None


def _measured(scorer: ReadsExchanges, track: Track) -> Floats:
    """Means and deviations, (3, 2), in the order of PACKAGED_FIGURES."""
    rows = np.array(list(_sentences(scorer, track)))
    if len(rows) < MIN_SENTENCES:
        raise ModelUnsupported(
            scorer.identity.label,
            f"it scores {len(rows)} sentences of the reference set, too few to tell what is usual of it; allow more"
            " tokens of context and answer, or go by gap",
        )
    columns = [list(DIRECTIONS).index(name) for name in PACKAGED_FIGURES]
    return np.column_stack([rows[:, columns].mean(axis=0), rows[:, columns].std(axis=0)])


def _sentences(scorer: ReadsExchanges, track: Track) -> Iterator[tuple[float, ...]]:
    # One exchange at a time: what fits a device then does, and a stop need not wait for long.
    for exchange in track(reference_exchanges()):
        (grounding,) = scorer.score([exchange])
        yield from (values for values in fused_features(exchange, grounding) if values is not None)


def _named(figures: Floats) -> Figures:
    return {name: (float(mean), float(spread)) for name, (mean, spread) in zip(PACKAGED_FIGURES, figures, strict=True)}
