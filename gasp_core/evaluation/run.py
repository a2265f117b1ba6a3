"""One run of the instrument over a file of labelled answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from gasp_core.detectors.detector import AnswerEvidence, Detector, Need
from gasp_core.detectors.standard.standardise import standardised
from gasp_core.detectors.text import LEXICAL
from gasp_core.detectors.two_pass import GAP
from gasp_core.errors import ModelUnsupported
from gasp_core.evaluation.attribution import agreement, embedding_match, lexical_match, supports
from gasp_core.evaluation.cache import FeatureCache
from gasp_core.evaluation.data import LabelledAnswer, read_answers, sample
from gasp_core.evaluation.embedding import load_embedding
from gasp_core.evaluation.gather import Reader, gather
from gasp_core.evaluation.ranking import Entry
from gasp_core.evaluation.report import Measured, measured, report
from gasp_core.evaluation.table import tabulate
from gasp_core.model import LanguageModel, load_model
from gasp_core.packaged import resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.scorer import GroundingScorer

T = TypeVar("T")


class ProgressTracker(Protocol):
    """Shows how far an iteration is."""

    def __call__(self, items: Iterable[T], total: int) -> Iterable[T]:
        """Yield the items."""
        ...


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """How to measure: on at most ``limit`` answers drawn at random, with so many resamples. ``seed`` is for all chance.

    ``any_scorer`` lets detectors read the scores of scorers that they were not fitted to.
    """

    limit: int | None = None
    seed: int = 0
    n_resamples: int = 1_000
    any_scorer: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationResult:
    """What was measured on one file: an entry per detector, and the rows behind them."""

    entries: dict[str, Entry]
    measured: Measured


@dataclass(frozen=True, slots=True)
class Models:
    """A scorer with exact leave-one-out, and the same with masked leave-one-out if the model allows it."""

    exact: Reader
    masked: Reader | None


def load_models(name: str, *, device: str, dtype: str, revision: str | None = None) -> Models:
    """Load the scorer. Raises ModelNotFound or ModelUnsupported."""
    model = load_model(resolve_model(name), device=device, dtype=dtype, revision=revision)
    passes = choose_passes(model).passes
    exact = GroundingScorer(model, passes=passes)
    masked = GroundingScorer(model, passes=passes, masked=True) if passes.can_hide else None
    return Models(_reader(exact, model), _reader(masked, model) if masked else None)


def needs_model(detectors: Iterable[Detector]) -> bool:
    """Whether one of the detectors needs more than text."""
    return any(detector.needs is not Need.TEXT for detector in detectors)


def measure(
    path: Path, detectors: Sequence[Detector], models: Models | None, config: EvaluationConfig, track: ProgressTracker
) -> EvaluationResult:
    """Measure the detectors on a file. Raises InputError, ModelOutOfMemory, ModelUnsupported."""
    answers = _answers(path, config)
    reader = models.exact if models else None
    if reader is not None and not config.any_scorer:
        detectors = [_standardised(detector, reader.scorer, track) for detector in detectors]
    every = list({one.name: one for one in [*detectors, *_controls(detectors)]}.values())
    if reader is not None:
        reader = reader.for_detectors(every)
    evidence = track(_evidence(answers, {one.needs for one in every}, reader), len(answers))
    table = tabulate(answers, evidence, every, seed=config.seed)
    found = measured(table, n_resamples=config.n_resamples, seed=config.seed)
    peers = [detector.name for detector in detectors if detector.own_model is not None]
    entries = report(table, found, [detector.name for detector in detectors], peers)
    for detector in detectors:
        reads = reader is not None and detector.needs is not Need.TEXT
        entries[detector.name]["scorer"] = reader.scorer.identity.label if reader and reads else detector.own_model
    return EvaluationResult(entries, found)


def measure_attribution(path: Path, models: Models, config: EvaluationConfig, track: ProgressTracker) -> Entry:
    """Compare the supporting chunk with the best match. Raises InputError, ModelOutOfMemory."""
    answers = _answers(path, config)
    matches = {"lexical": lexical_match(answer.exchange for answer in answers)}
    if (embed := load_embedding()) is not None:
        matches["embedding"] = embedding_match(embed)
    needs = {Need.LEAVE_ONE_OUT}
    exact = track(_evidence(answers, needs, models.exact), len(answers))
    masked = _evidence(answers, needs, models.masked) if models.masked else None
    found = list(supports(answers, exact, masked, matches))
    return agreement(answers, found, n_resamples=config.n_resamples, seed=config.seed)


def _standardised(detector: Detector, scorer: GroundingScorer, track: ProgressTracker) -> Detector:
    try:
        return standardised(detector, scorer, lambda exchanges: track(exchanges, len(exchanges)))
    except ModelUnsupported as error:
        raise ModelUnsupported(scorer.identity.label, f"{error.reason}; --any-scorer tries it all the same") from error


def _answers(path: Path, config: EvaluationConfig) -> list[LabelledAnswer]:
    return sample(read_answers(path), config.limit, config.seed)


def _controls(detectors: Sequence[Detector]) -> list[Detector]:
    """What every detector is compared with. The model is not run for its sake alone."""
    return [LEXICAL, *([GAP] if needs_model(detectors) else [])]


def _evidence(answers: Sequence[LabelledAnswer], needs: set[Need], reader: Reader | None) -> Iterable[AnswerEvidence]:
    return gather((answer.exchange for answer in answers), needs, reader)


def _reader(scorer: GroundingScorer, model: LanguageModel) -> Reader:
    return Reader(scorer, model, FeatureCache(scorer.identity))
