"""Other models as detectors, so that they are measured beside ours on the same sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gasp_core.array_cache import ArrayCache, digest
from gasp_core.arrays import Floats
from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Need, Read
from gasp_core.detectors.registry import DETECTORS
from gasp_core.detectors.sentences import NO_FEATURE
from gasp_core.detectors.text import text_skips
from gasp_core.evaluation.cache import exchange_key
from gasp_core.grounding import Exchange, Sentence
from gasp_core.memory import in_memory
from gasp_core.packaged import cache_directory
from gasp_core.peers.load import load_peer
from gasp_core.peers.peer import Peer

# Raised when the files change their form: older ones are then not found.
FORM = 1


def peer_detectors(names: Sequence[str], *, device: str, folder: Path | None = None) -> list[Detector]:
    """A detector for each model, by hub name or local folder, called as the model is.

    What it said is kept under ``folder``, by default that of what scorers said. Raises ModelNotFound, ModelUnsupported.
    """
    wanted = list(dict.fromkeys(names))
    called = zip(_short_names(wanted), wanted, strict=True)
    return [peer_detector(short, load_peer(name, device=device), folder) for short, name in called]


def peer_detector(name: str, peer: Peer, folder: Path | None = None) -> Detector:
    """The detector of that name that scores by a peer's probabilities of support, in [0, 1]."""
    root = (folder or cache_directory() / "features") / digest(["peer", FORM, peer.identity])
    return Detector(name, Need.TEXT, _reading(peer, ArrayCache(root)), own_model=peer.identity)


def _short_names(names: Sequence[str]) -> list[str]:
    """The names of folders instead of their paths, where that is the name of nothing else."""
    short = [Path(name).name if Path(name).is_dir() else name for name in names]
    taken: Collection[str] = {*DETECTORS, *(one for one, count in Counter(short).items() if count > 1)}
    return [name if one in taken else one for one, name in zip(short, names, strict=True)]


def _reading(peer: Peer, cache: ArrayCache) -> Read:
    def read(evidence: AnswerEvidence) -> list[FeatureVector]:
        skips = text_skips(evidence)
        asked = [sentence for sentence, skip in zip(evidence.sentences, skips, strict=True) if skip is None]
        said = iter(_support(peer, cache, evidence.exchange, asked).tolist())
        return [FeatureVector(reason=skip) if skip else _vector(next(said)) for skip in skips]

    return read


def _support(peer: Peer, cache: ArrayCache, exchange: Exchange, sentences: Sequence[Sentence]) -> Floats:
    """The support (n,) of each sentence; the peer is asked once in all runs."""
    if not sentences:
        return np.zeros(0)
    key = digest([exchange_key(exchange), [[sentence.start, sentence.end] for sentence in sentences]])
    kept = cache.load(key)
    if kept is not None and _fits(kept.get("support"), len(sentences)):
        return kept["support"]
    said = in_memory(
        lambda: peer.support(exchange, sentences),
        model=peer.identity,
        what="an answer and its passages are too much for the memory of the device; choose another device",
    )
    support = np.array(said, dtype=np.float64)
    cache.store(key, {"support": support})
    return support


def _fits(array: NDArray[Any] | None, count: int) -> bool:
    return array is not None and array.dtype == np.float64 and array.shape == (count,)


def _vector(value: float) -> FeatureVector:
    return FeatureVector((value,)) if np.isfinite(value) else FeatureVector(reason=NO_FEATURE)
