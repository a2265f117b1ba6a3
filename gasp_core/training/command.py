"""What ``gasp train`` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gasp_core.detectors.detector import AnswerEvidence, Need
from gasp_core.detectors.readout.readout import Readout
from gasp_core.evaluation.cache import FeatureCache
from gasp_core.evaluation.command import Progress
from gasp_core.evaluation.data import LabelledAnswer, read_answers
from gasp_core.evaluation.gather import Reader, gather
from gasp_core.evaluation.run import ProgressTracker, load_models
from gasp_core.identity import ScorerIdentity
from gasp_core.passes.taps import Tap, decoder_layers
from gasp_core.scorer import MASKED_METHOD_VERSION, METHOD_VERSION
from gasp_core.training.learn import learn
from gasp_core.training.rows import labelled_rows


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """What was asked for. ``layer`` is whose states are read; None is that at two thirds of the depth."""

    model: str
    device: str
    dtype: str
    revision: str | None = None
    layer: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Labelled answers under a name."""

    name: str
    answers: Sequence[LabelledAnswer]


def sets_of(paths: Sequence[Path]) -> list[LabelledSet]:
    """The sets of these files, each under its file's name without the ending. Raises InputError."""
    return [LabelledSet(path.stem, read_answers(path)) for path in paths]


def train(sets: Sequence[LabelledSet], request: TrainRequest, progress: Progress) -> tuple[Readout, list[str]]:
    """Learn a readout from sets of labelled answers; gives it and the lines to print.

    What the model says is kept in the cache, so that the next run need not ask it. Raises InputError, ModelError.
    """
    models = load_models(request.model, device=request.device, dtype=request.dtype, revision=request.revision)
    reader = models.exact
    layers = decoder_layers(reader.model.network, reader.model.name)
    layer = request.layer or max(1, round(len(layers) * 2 / 3))
    reading = states_reader(reader, layer)
    read = []
    for one in sets:
        with progress(f"reading {one.name}") as track:
            read.append(read_set(one.answers, reading, track))
    names = [one.name for one in sets]
    readout = learn(
        labelled_rows(read, names), names, layer=layer, scorers=_scorers(reader.scorer.identity), seed=request.seed
    )
    return readout, list(_lines(readout))


def read_set(
    answers: Sequence[LabelledAnswer], reader: Reader, track: ProgressTracker
) -> list[tuple[LabelledAnswer, AnswerEvidence]]:
    """The answers with what two passes tell of them, in order."""
    known = gather((answer.exchange for answer in answers), {Need.TWO_PASS}, reader)
    return list(zip(answers, track(known, len(answers)), strict=True))


def states_reader(reader: Reader, layer: int) -> Reader:
    """A reader of the states themselves, which are kept apart from all else."""
    identity = reader.scorer.identity
    apart = replace(identity, method=f"{identity.method} states-{layer}")
    return Reader(reader.scorer.reading([Tap(layer)]), reader.model, FeatureCache(apart))


def _scorers(identity: ScorerIdentity) -> tuple[ScorerIdentity, ...]:
    """How chunks are removed is nothing to two passes."""
    return tuple(replace(identity, method=method) for method in (METHOD_VERSION, MASKED_METHOD_VERSION))


def _lines(readout: Readout) -> Iterator[str]:
    yield f"readout of layer {readout.layer}, ridge {readout.provenance['ridge']}"
    for name, told in readout.provenance["sets"].items():
        area = told["auc_out_of_fold"]
        yield (
            f"{name}: {told['sentences']} sentences of {told['sources']} sources, {told['unsupported']} unsupported;"
            f" AUC out of fold {'–' if area is None else f'{area:.3f}'}"
        )
    yield f"flags below {readout.bounds.flag_below}"
