"""Scoring a batch whatever its exchanges do to the model: by halves, alone, shortened, and at last not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import structlog

from gasp_core.errors import ModelOutOfMemory
from gasp_core.grounding import AnswerGrounding, Exchange, Method, Passage
from gasp_core.identity import ScorerIdentity
from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits
from worker.errors import ScorerBroken, ScorerUnavailable
from worker.runtime.metrics import MemoryStep, Metrics

# Contexts that an exchange too large for the device is cut to, in tokens, one after the other.
SHORTER_CONTEXTS = (16_384, 8_192, 4_096, 2_048, 1_024)

# Scored when another exchange fails: if not even this can be, the fault is not the exchange's.
PROBE = Exchange("When does it open?", (Passage("probe", "The museum opens at nine."),), "It opens at nine.")

log = structlog.get_logger(__name__)


class AnswerScorer(Protocol):
    """What the worker needs of a scorer; gasp_core's GroundingScorer is one."""

    @property
    def identity(self) -> ScorerIdentity:
        """Everything that the scores depend on."""
        ...

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score each answer, in order."""
        ...

    def reading(self, taps: Sequence[Tap]) -> Self:
        """The same scorer with what these taps read in the readings of sentences."""
        ...

    def within(self, limits: Limits) -> Self:
        """The same scorer under other limits."""
        ...


@runtime_checkable
class TellsProgress(Protocol):
    """A scorer that gives signs of life while it scores."""

    def tell_progress(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` between any two pieces of work from now on."""
        ...


@dataclass(frozen=True, slots=True)
class Unscorable:
    """The scorer failed on this exchange alone. ``error`` is the name of the exception's type."""

    error: str


class Scoring:
    """Scores batches. What fails together is tried in halves, so that one exchange cannot take others along."""

    def __init__(self, scorer: AnswerScorer, metrics: Metrics, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self._scorer = scorer
        self._metrics = metrics
        self._limits = limits

    def score(self, exchanges: Sequence[Exchange]) -> list[AnswerGrounding | Unscorable]:
        """Score each answer, in order.

        Raises ScorerUnavailable if the device has no memory even for a small exchange, which may pass, and
        ScorerBroken if it fails on that in another way.
        """
        if not exchanges:
            return []
        try:
            return list(self._scorer.score(exchanges))
        except ModelOutOfMemory:
            failure: Exception | None = None
        except Exception as error:  # noqa: BLE001 - whatever an exchange does to the model must not stop a partition
            failure = error
        if len(exchanges) > 1:
            return self._by_halves(exchanges, failure)
        return [self._shortened(exchanges[0]) if failure is None else self._refused(failure)]

    def attribute(self, exchange: Exchange) -> AnswerGrounding | Unscorable:
        """Score one answer by leave-one-out. Raises as ``score`` does."""
        try:
            return self._scorer.score([exchange], Method.LEAVE_ONE_OUT)[0]
        except Exception as error:  # noqa: BLE001 - as in score
            return self._refused(error)

    def _by_halves(
        self, exchanges: Sequence[Exchange], failure: Exception | None
    ) -> list[AnswerGrounding | Unscorable]:
        middle = len(exchanges) // 2
        kind = "ModelOutOfMemory" if failure is None else type(failure).__name__
        log.warning("batch_scoring_failed", error=kind, exchanges=len(exchanges))
        if failure is None:
            self._metrics.out_of_memory(MemoryStep.HALVED if middle > 1 else MemoryStep.SINGLE)
        return self.score(exchanges[:middle]) + self.score(exchanges[middle:])

    def _shortened(self, exchange: Exchange) -> AnswerGrounding | Unscorable:
        """Cut the context more and more; the row says how much was cut."""
        most = self._limits.max_context_tokens
        for tokens in SHORTER_CONTEXTS:
            if most is not None and tokens >= most:
                continue
            try:
                (grounding,) = self._scorer.within(Limits(tokens, self._limits.max_answer_tokens)).score([exchange])
            except ModelOutOfMemory:
                continue
            self._metrics.out_of_memory(MemoryStep.TRUNCATED)
            log.warning(
                "context_cut_for_memory", max_context_tokens=tokens, cut=grounding.truncation.context_tokens_cut
            )
            return grounding
        self._probe()
        self._metrics.out_of_memory(MemoryStep.REFUSED)
        return Unscorable(ModelOutOfMemory.__name__)

    def _refused(self, failure: Exception) -> Unscorable:
        self._probe()
        return Unscorable(type(failure).__name__)

    def _probe(self) -> None:
        try:
            self._scorer.score([PROBE])
        except ModelOutOfMemory as error:
            message = "the device has no memory even for a small exchange; look at what else uses GASP_DEVICE"
            raise ScorerUnavailable(message) from error
        except Exception as error:
            kind = type(error).__name__
            message = f"the model fails on every exchange ({kind}); if a restart does not help, look at GASP_DEVICE"
            raise ScorerBroken(message) from error
