"""The features of every sentence of a case under the names of gasp-rag, and the scorer that gives them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from gasp_core.detectors.leave_one_out import max_drop, max_jsd, mean_drop, top2_drop
from gasp_core.gasp_rag.case import Case, chunk_spans, sentence_spans
from gasp_core.grounding import AnswerGrounding, Exchange, Method, Passage, SentenceGrounding, SentenceSkip
from gasp_core.identity import ScorerIdentity
from gasp_core.packaged import resolve_model
from gasp_core.template import PLAIN, PromptTemplate

if TYPE_CHECKING:
    from gasp_core.passes.taps import Tap
    from gasp_core.plan import Limits
    from gasp_core.scorer import GroundingScorer

NO_CHUNK = -1


class Feature(StrEnum):
    """What a sensitivity may be. All are nats per token; higher means more grounded."""

    MAX_DROP = "max_drop"
    GAP = "gap"
    MEAN_DROP = "mean_drop"
    TOP2_DROP = "top2_drop"
    MAX_JSD = "max_jsd"
    JSD_NO_CONTEXT = "jsd_noctx"


# Those that the passes with the whole context and with none suffice for.
TWO_PASS_FEATURES = frozenset({Feature.GAP, Feature.JSD_NO_CONTEXT})


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """The features of one sentence, in nats: finite, or None where they were not computed.

    ``gap`` and the drops are log-likelihood lost, signed; ``jsd_noctx`` and ``max_jsd`` lie in [0, ln 2]. What is
    about chunks needs leave-one-out: ``max_drop``, ``mean_drop``, ``top2_drop``, ``max_jsd``, and ``chunk_drops`` with
    an entry per chunk of the case, None for one that the sentence was not read with. ``attributed_chunk`` is the index
    of the chunk that supports the sentence, or -1 if none is named; ``supporting_chunks`` are the indices of all that
    do in each other's stead, and ``unlocated`` says that support is there, but in no few of them.
    ``contradicting_chunk`` is the index of the one whose removal makes the sentence likelier, or -1. A sentence without
    features has a ``skip_reason``.
    ``[start, end)`` is its character span in the answer, ``text`` what stands there; ``worst`` is the span of the words
    that are grounded least, None without features.
    """

    index: int
    text: str
    n_tokens: int
    gap: float | None = None
    jsd_noctx: float | None = None
    max_drop: float | None = None
    mean_drop: float | None = None
    top2_drop: float | None = None
    max_jsd: float | None = None
    chunk_drops: tuple[float | None, ...] = ()
    attributed_chunk: int = NO_CHUNK
    start: int = 0
    end: int = 0
    surprisal: float | None = None
    skip_reason: SentenceSkip | None = None
    contradicting_chunk: int = NO_CHUNK
    supporting_chunks: tuple[int, ...] = ()
    unlocated: bool = False
    worst: tuple[int, int] | None = None

    @property
    def features(self) -> dict[str, float | None]:
        """The features by name, with ``n_tokens``, which a sentence without features has too."""
        return {feature: getattr(self, feature) for feature in _FEATURE_ORDER} | {"n_tokens": self.n_tokens}


_FEATURE_ORDER = (
    Feature.GAP.value,
    Feature.JSD_NO_CONTEXT.value,
    Feature.MAX_DROP.value,
    Feature.MEAN_DROP.value,
    Feature.TOP2_DROP.value,
    Feature.MAX_JSD.value,
)


class Scorer:
    """Scores cases with one model. Not for use by several threads at once.

    ``model_id`` is a causal language model by hub name or folder. ``device`` is ``cpu``, a CUDA device or None for
    what there is; ``dtype`` is ``float32``, ``bfloat16``, ``float16`` or None for float32 on a CPU and bfloat16
    elsewhere. At most ``max_ctx_tokens`` of the context are read, in whole chunks from the front, and at most
    ``max_ans_tokens`` of the answer, in whole sentences. ``template`` is the prompt.

    Raises ValueError if a limit is below 1, ModelNotFound or ModelUnsupported if the model cannot be used.
    """

    def __init__(
        self,
        model_id: str,
        device: str | None = None,
        dtype: str | None = None,
        max_ctx_tokens: int = 1800,
        max_ans_tokens: int = 256,
        *,
        template: PromptTemplate = PLAIN,
    ) -> None:
        _require_positive(max_ctx_tokens=max_ctx_tokens, max_ans_tokens=max_ans_tokens)
        # Seconds to import, which those who only look at results or --help need not wait for.
        from gasp_core.model import load_model
        from gasp_core.passes.choice import choose_passes

        self.model_id = model_id
        self._model = load_model(resolve_model(model_id), device=device or "auto", dtype=dtype or "auto")
        self._passes = choose_passes(self._model).passes
        self._limits = self.limits(max_ctx_tokens, max_ans_tokens)
        self._template = template

    def score(
        self,
        case: Case,
        leave_one_out: bool = True,  # noqa: FBT001, FBT002 - gasp-rag's signature
    ) -> list[SentenceScore]:
        """Score every sentence of a case. Without ``leave_one_out`` there are no drops and no attributed chunk.

        Raises ValueError if the spans of the case are not those that ``Case.from_texts`` gives it.
        """
        if tuple(case.sent_spans) != sentence_spans(case.answer) or tuple(case.chunk_spans) != chunk_spans(
            case.context, max(1, case.n_chunks)
        ):
            raise ValueError("the spans of the case are not those of its texts; make it with Case.from_texts")
        exchange = Exchange(case.query, (Passage("context", case.context),), case.answer)
        grounding = self.ground([exchange], max_chunks=case.n_chunks, leave_one_out=leave_one_out)[0]
        return sentence_scores(exchange, grounding)

    @property
    def identity(self) -> ScorerIdentity:
        """Everything that the scores depend on."""
        return self._scorer(1, self._limits).identity

    def reading(self, taps: Sequence[Tap]) -> Self:
        """The same scorer with what these taps read in the ``readings`` of sentences; it shares the model."""
        other = copy.copy(self)
        other._passes = self._passes.reading(taps)  # noqa: SLF001 - a copy of our own
        return other

    def limits(self, max_ctx_tokens: int | None, max_ans_tokens: int | None) -> Limits:
        """Limits for ``ground``; None is what the model's window holds. Raises ValueError if one is below 1."""
        from gasp_core.plan import Limits

        _require_positive(max_ctx_tokens=max_ctx_tokens, max_ans_tokens=max_ans_tokens)
        return Limits(max_context_tokens=max_ctx_tokens, max_answer_tokens=max_ans_tokens)

    def grounding_scorer(self, limits: Limits) -> GroundingScorer:
        """What scores exchanges as they are, under these limits; it shares the model."""
        from gasp_core.scorer import MAX_CHUNKS

        return self._scorer(MAX_CHUNKS, limits)

    def ground(
        self, exchanges: Sequence[Exchange], *, max_chunks: int, leave_one_out: bool, limits: Limits | None = None
    ) -> list[AnswerGrounding]:
        """Score exchanges together; the results are in their order.

        A context of one passage is grouped into at most ``max_chunks`` chunks. ``limits`` go before those of the
        scorer.
        """
        scorer = self._scorer(max_chunks, limits or self._limits)
        return scorer.score(exchanges, Method.LEAVE_ONE_OUT if leave_one_out else Method.TWO_PASS)

    def _scorer(self, max_chunks: int, limits: Limits) -> GroundingScorer:
        from gasp_core.scorer import GroundingScorer

        return GroundingScorer(
            self._model,
            template=self._template,
            limits=limits,
            max_chunks=max(1, max_chunks),
            passes=self._passes,
        )


def sentence_scores(exchange: Exchange, grounding: AnswerGrounding) -> list[SentenceScore]:
    """The grounding of an answer under gasp-rag's names: one score per sentence, in order."""
    return [_sentence_score(exchange.answer, result, len(grounding.chunks)) for result in grounding.sentences]


def _sentence_score(answer: str, result: SentenceGrounding, n_chunks: int) -> SentenceScore:
    place = result.sentence
    by_chunk = {drop.chunk: drop.drop for drop in result.drops}
    return SentenceScore(
        index=result.index,
        text=answer[place.start : place.end],
        n_tokens=result.n_tokens,
        gap=result.gap,
        jsd_noctx=result.jsd_no_context,
        max_drop=max_drop(result),
        mean_drop=mean_drop(result),
        top2_drop=top2_drop(result),
        max_jsd=max_jsd(result),
        chunk_drops=tuple(by_chunk.get(chunk) for chunk in range(n_chunks)) if by_chunk else (),
        attributed_chunk=NO_CHUNK if result.supporting_chunk is None else result.supporting_chunk,
        start=place.start,
        end=place.end,
        surprisal=result.surprisal,
        skip_reason=result.skip_reason,
        contradicting_chunk=NO_CHUNK if result.contradicting_chunk is None else result.contradicting_chunk,
        supporting_chunks=result.supporting_chunks,
        unlocated=result.unlocated,
        worst=result.worst,
    )


def _require_positive(**limits: int | None) -> None:
    for name, tokens in limits.items():
        if tokens is not None and tokens < 1:
            raise ValueError(f"{name} must be at least 1, not {tokens}")
