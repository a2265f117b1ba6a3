"""From answers to what detectors read: what is kept, where it is kept, and the model where it is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from gasp_core.attractor.reading import read_trajectories
from gasp_core.attractor.trajectory import AnswerTrajectories
from gasp_core.detectors.detector import AnswerEvidence, Detector, Need
from gasp_core.errors import DetectorError
from gasp_core.evaluation.cache import FeatureCache
from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.model import LanguageModel
from gasp_core.scorer import GroundingScorer
from gasp_core.text.sentences import split_answer
from gasp_core.tokens import AnswerTokens
from gasp_core.tpa.attribution import attribute_answer
from gasp_core.tpa.sources import AnswerSources

# Answers handed to the scorer at once; what is held does not grow with the file.
GROUP = 4


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads answers by a scorer and its model, and each of them once: what was read is kept in the cache.

    Its methods raise ModelOutOfMemory if the exchanges are too much for the device together.
    """

    scorer: GroundingScorer
    model: LanguageModel
    cache: FeatureCache

    def for_detectors(self, detectors: Sequence[Detector]) -> Reader:
        """A reader that also reads what these detectors want to know from inside the model; it keeps that apart.

        Raises DetectorError if several of them do.
        """
        tapping = [detector for detector in detectors if detector.taps()]
        if not tapping:
            return self
        if len(tapping) > 1:
            names = ", ".join(detector.version or detector.name for detector in tapping)
            raise DetectorError(tapping[0].name, f"{names} read different states of the model; measure one at a time")
        scorer = self.scorer.reading(tapping[0].taps())
        return Reader(scorer, self.model, FeatureCache(tapping[0].judging(scorer.identity)))

    def tokens(self, exchanges: Sequence[Exchange], method: Method) -> list[AnswerTokens]:
        """The token scores of each answer, in order."""
        found = [self.cache.load(exchange, method) for exchange in exchanges]
        missing = [exchange for exchange, tokens in zip(exchanges, found, strict=True) if tokens is None]
        fresh = iter(self.scorer.score_tokens(missing, method) if missing else ())
        return [tokens or self._keep(exchange, next(fresh)) for exchange, tokens in zip(exchanges, found, strict=True)]

    def sources(self, exchange: Exchange) -> AnswerSources:
        """Where the probability of each token of the answer comes from."""
        found = self.cache.load_sources(exchange)
        if found is None:
            found = attribute_answer(self.model, exchange)
            self.cache.store_sources(exchange, found)
        return found

    def trajectories(self, exchange: Exchange) -> AnswerTrajectories:
        """How the states of each sentence of the answer move while the context grows."""
        found = self.cache.load_trajectories(exchange)
        if found is None:
            found = read_trajectories(self.model, self.scorer.passes, exchange)
            self.cache.store_trajectories(exchange, found)
        return found

    def _keep(self, exchange: Exchange, tokens: AnswerTokens) -> AnswerTokens:
        self.cache.store(exchange, tokens)
        return tokens


def gather(exchanges: Iterable[Exchange], needs: Collection[Need], reader: Reader | None) -> Iterator[AnswerEvidence]:
    """Yield what is known about each answer, in order, a few at a time.

    ``reader`` may be None only where nothing but text is needed.
    """
    remaining = iter(exchanges)
    while group := list(islice(remaining, GROUP)):
        # First, because it leaves what two passes tell in the cache.
        leave_one_out = _groundings(group, Method.LEAVE_ONE_OUT, needs, reader)
        two_pass = _groundings(group, Method.TWO_PASS, needs, reader)
        for exchange, whole, removed in zip(group, two_pass, leave_one_out, strict=True):
            yield AnswerEvidence(
                exchange,
                split_answer(exchange.answer),
                two_pass=whole,
                leave_one_out=removed,
                sources=reader.sources(exchange) if reader and Need.SOURCES in needs else None,
                trajectories=reader.trajectories(exchange) if reader and Need.TRAJECTORIES in needs else None,
            )


def _groundings(
    exchanges: Sequence[Exchange], method: Method, needs: Collection[Need], reader: Reader | None
) -> Sequence[AnswerGrounding | None]:
    if reader is None or Need(method) not in needs:
        return [None] * len(exchanges)
    return [tokens.grounding for tokens in reader.tokens(exchanges, method)]
