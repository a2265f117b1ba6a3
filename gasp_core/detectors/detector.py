"""What a detector is: it makes one number out of what is known about a sentence. Higher is more grounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Self, TypeAlias

from gasp_core.errors import DetectorError, ModelUnsupported
from gasp_core.grounding import AnswerGrounding, Exchange, Method, Sentence
from gasp_core.identity import ScorerIdentity, listed

if TYPE_CHECKING:  # numpy and torch, which those who only look at names can spare
    from gasp_core.arrays import Flags, Floats
    from gasp_core.attractor.trajectory import AnswerTrajectories
    from gasp_core.passes.taps import Tap
    from gasp_core.tpa.sources import AnswerSources


class Need(StrEnum):
    """What a detector has to know of an answer: only its text, or what the model says of it."""

    TEXT = "text"
    TWO_PASS = "two_pass"
    LEAVE_ONE_OUT = "leave_one_out"
    SOURCES = "sources"
    TRAJECTORIES = "trajectories"

    @property
    def in_grounding(self) -> bool:
        """Whether a grounding and the texts tell all of it."""
        return self not in (Need.SOURCES, Need.TRAJECTORIES)


class Training(StrEnum):
    """What a detector that learns has to see before it scores."""

    SAMPLE = "sample"  # features of all sentences, without labels: what is usual among them
    LABELS = "labels"  # features with labels; a sentence is scored by what was learned from other sources


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """What is known about one answer.

    ``two_pass`` is there for detectors that need two passes, ``leave_one_out`` for those that need that, and
    ``sources``, where the probability of each token comes from, and ``trajectories``, how the states of each sentence
    move while the context grows, for those that need them. ``terms`` are what ``readout.terms`` reads of the sentences,
    where somebody has read it already.
    """

    exchange: Exchange
    sentences: tuple[Sentence, ...]
    two_pass: AnswerGrounding | None = None
    leave_one_out: AnswerGrounding | None = None
    sources: AnswerSources | None = None
    trajectories: AnswerTrajectories | None = None
    terms: Sequence[tuple[float, ...] | None] | None = None

    @classmethod
    def of(
        cls,
        exchange: Exchange,
        grounding: AnswerGrounding,
        terms: Sequence[tuple[float, ...] | None] | None = None,
    ) -> Self:
        """What one grounding tells. That of leave-one-out has what two passes tell in it."""
        return cls(
            exchange,
            tuple(one.sentence for one in grounding.sentences),
            two_pass=grounding,
            leave_one_out=grounding if grounding.method is Method.LEAVE_ONE_OUT else None,
            terms=terms,
        )


@dataclass(frozen=True, slots=True)
class FeatureVector:
    """Finite numbers about one sentence, or none of them and the reason."""

    values: tuple[float, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a detector's scores are cut before anybody has calibrated: docs/thresholds.md says how they were chosen.

    A sentence is flagged below ``flag_below``, an answer attributed if its lowest score is below ``attribute_below``.
    """

    flag_below: float
    attribute_below: float


Read: TypeAlias = Callable[[AnswerEvidence], Sequence[FeatureVector]]
Figures: TypeAlias = Mapping[str, tuple[float, float]]  # terms to their usual mean and standard deviation
Score: TypeAlias = Callable[[Sequence[float]], float]  # the features of a sentence to its score
ScoreAll: TypeAlias = "Callable[[Floats], Floats]"  # features (n, F) to scores (n,)
Learn: TypeAlias = "Callable[[Floats, Flags], ScoreAll]"  # from features (n, F) and whether each is unsupported


@dataclass(frozen=True, slots=True)
class Learner:
    """How a detector learns: ``learn`` makes its scores, after it has seen what ``training`` says."""

    training: Training
    learn: Learn


def first_feature(features: Sequence[float]) -> float:
    """The first number is the score."""
    return features[0]


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector by name.

    ``read`` gives the features of every sentence of an answer, in order, each of the same length. ``score`` makes a
    score out of them, unless it has a ``learner``, which does. ``fitted_to`` gives the scorers whose scores it was
    fitted to, any if it is None; ``standardise`` makes a score for every other one, from the figures of that, and where
    it is None the detector reads no other. ``version`` is its part in the identity of stored scores and changes
    whenever they do; None is for a detector that nothing is stored by. ``bounds`` are where its scores are cut at
    first, None if nobody chose any. ``own_model`` names the model that it asks by itself, None if it asks none.
    ``taps`` gives what has to be read inside the scorer for it.
    """

    name: str
    needs: Need
    read: Read
    score: Score = first_feature
    learner: Learner | None = None
    fitted_to: Callable[[], tuple[ScorerIdentity, ...]] | None = None
    version: str | None = None
    bounds: Bounds | None = None
    own_model: str | None = None
    taps: Callable[[], tuple[Tap, ...]] = tuple
    standardise: Callable[[Figures], Score] | None = None

    def scores(self, evidence: AnswerEvidence) -> tuple[float | None, ...]:
        """The score of each sentence, None where it has no features. Raises DetectorError if it has to learn first."""
        return self.scored(self.read(evidence))

    def scored(self, features: Sequence[FeatureVector]) -> tuple[float | None, ...]:
        """The score of each sentence by what ``read`` gave. Raises DetectorError if it has to learn first."""
        self.require_ready()
        return tuple(None if one.reason is not None else self.score(one.values) for one in features)

    def require_ready(self) -> None:
        """Raise DetectorError if it has to learn before it scores."""
        if self.learner is not None:
            raise DetectorError(self.name, f"{self.name} has to learn before it scores; `gasp eval` measures it")

    def is_fitted_to(self, scorer: ScorerIdentity) -> bool:
        """Whether it reads that scorer as it is, under any limits: coefficients were learned from some's scores."""
        return self.fitted_to is None or scorer.computation in self.fitted_to()

    def admits(self, scorer: ScorerIdentity) -> bool:
        """Whether it may read what that scorer says, as it is or standardised."""
        return self.standardise is not None or self.is_fitted_to(scorer)

    def require_admission(self, scorer: ScorerIdentity) -> None:
        """Raise ModelUnsupported if it does not admit the scorer."""
        if self.fitted_to is not None and not self.admits(scorer):
            known = listed(self.fitted_to())
            raise ModelUnsupported(scorer.label, f"{self.name} was fitted to the scores of {known}")

    def require_bounds(self) -> Bounds:
        """The bounds. Raises DetectorError if there are none."""
        if self.bounds is None:
            raise DetectorError(self.name, f"nobody has chosen bounds for the scores of {self.name}")
        return self.bounds

    def judging(self, scorer: ScorerIdentity) -> ScorerIdentity:
        """The identity of what the scorer and this detector say together, under which it is stored.

        Raises DetectorError if nothing is stored by it.
        """
        if self.version is None:
            raise DetectorError(self.name, f"nothing is stored by {self.name}")
        return replace(scorer, method=f"{scorer.method} {self.version}") if self.version else scorer
