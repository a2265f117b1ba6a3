"""The scorer: exchanges in, the grounding of every sentence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gasp_core.chunks import context_chunks
from gasp_core.divergence import token_scores
from gasp_core.features import assign_tokens, sentence_grounding, skip_for
from gasp_core.grounding import (
    AnswerGrounding,
    AnswerSkip,
    Chunk,
    Exchange,
    Method,
    Sentence,
    SentenceGrounding,
    SentenceSkip,
    Truncation,
)
from gasp_core.identity import ScorerIdentity
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.plan import Limits, Plan, plan_exchange
from gasp_core.refusals import is_refusal
from gasp_core.sentences import split_answer
from gasp_core.template import PLAIN, PromptTemplate

# Raised whenever segmentation, passes or aggregation change what a score means.
METHOD_VERSION = "gasp-1"

ANSWER_TO_SENTENCE_SKIP = {
    AnswerSkip.NO_PASSAGES: SentenceSkip.NO_PASSAGES,
    AnswerSkip.REFUSAL: SentenceSkip.REFUSAL,
    AnswerSkip.QUESTION_TOO_LONG: SentenceSkip.QUESTION_TOO_LONG,
}


@dataclass(frozen=True, slots=True)
class _Work:
    """One exchange that has something to score."""

    exchange: Exchange
    sentences: tuple[Sentence, ...]
    chunks: tuple[Chunk, ...]
    plan: Plan
    members: list[list[int]]


class GroundingScorer:
    """Scores answers with one model under one template. Not for use by several threads at once.

    ``max_chunks`` is into how many chunks a single long passage is grouped; several passages are the chunks
    themselves. ``passes`` runs the model (None: what suits it and its device).
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        template: PromptTemplate = PLAIN,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        max_chunks: int = 5,
        passes: Passes | None = None,
    ) -> None:
        self._model = model
        self._template = template
        self._limits = limits
        self._max_chunks = max_chunks
        self._passes = passes or choose_passes(model).passes

    @property
    def identity(self) -> ScorerIdentity:
        """Everything that the scores depend on."""
        return ScorerIdentity(
            model=self._model.name,
            revision=self._model.revision,
            dtype=self._model.dtype,
            template=self._template.name,
            method=METHOD_VERSION,
        )

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score each answer; the results are in the order of ``exchanges`` and do not depend on each other.

        TWO_PASS reads the answer with the whole context and with none. LEAVE_ONE_OUT also reads it without each
        chunk and fills ``drops`` and ``supporting_chunk``. An answer that cannot be scored has a ``skip_reason``;
        its sentences are listed all the same.
        """
        prepared = [self._prepare(exchange, method) for exchange in exchanges]
        work = [item for item in prepared if isinstance(item, _Work)]
        scored = iter(self._run(work, method))
        return [item if isinstance(item, AnswerGrounding) else next(scored) for item in prepared]

    def _prepare(self, exchange: Exchange, method: Method) -> _Work | AnswerGrounding:
        sentences = split_answer(exchange.answer)
        chunks = context_chunks(exchange.passages, self._max_chunks)
        if skip := _answer_skip(exchange, sentences, chunks):
            return self._skipped(exchange, sentences, chunks, method, skip)
        plan = plan_exchange(
            exchange,
            chunks,
            model=self._model,
            template=self._template,
            limits=self._limits,
            leave_one_out=method is Method.LEAVE_ONE_OUT,
        )
        if plan is None:
            return self._skipped(exchange, sentences, chunks, method, AnswerSkip.QUESTION_TOO_LONG)
        members = assign_tokens(exchange.answer, sentences, plan.answer_spans)
        skips = [
            skip_for(sentence, tokens, len(plan.answer_ids))
            for sentence, tokens in zip(sentences, members, strict=True)
        ]
        if all(skips):
            return _listed(sentences, members, skips, chunks, method, plan.truncation, AnswerSkip.NOTHING_TO_SCORE)
        return _Work(exchange, sentences, chunks, plan, members)

    @torch.inference_mode()
    def _run(self, work: Sequence[_Work], method: Method) -> list[AnswerGrounding]:
        if not work:
            return []
        states = self._passes.answer_states([item.plan for item in work])
        results = []
        for item, variants in zip(work, states, strict=True):
            answer_ids = torch.tensor(item.plan.answer_ids, device=self._model.device)
            log_probabilities, divergences = token_scores(self._model.logits, variants, answer_ids)
            sentences = tuple(
                sentence_grounding(
                    index,
                    sentence,
                    tokens,
                    plan=item.plan,
                    chunks=item.chunks,
                    log_probabilities=log_probabilities.cpu(),
                    divergences=divergences.cpu(),
                )
                for index, (sentence, tokens) in enumerate(zip(item.sentences, item.members, strict=True))
            )
            # Only non-finite numbers can still leave an answer without a score here.
            scored = any(sentence.gap is not None for sentence in sentences)
            skip = None if scored else AnswerSkip.NOTHING_TO_SCORE
            results.append(AnswerGrounding(method, sentences, item.chunks, item.plan.truncation, skip))
        return results

    def _skipped(
        self,
        exchange: Exchange,
        sentences: Sequence[Sentence],
        chunks: tuple[Chunk, ...],
        method: Method,
        skip: AnswerSkip,
    ) -> AnswerGrounding:
        """List the sentences of an answer that no pass is run for."""
        encoding = self._model.encode(exchange.answer)
        members = assign_tokens(exchange.answer, sentences, encoding.spans)
        reason = ANSWER_TO_SENTENCE_SKIP.get(skip, SentenceSkip.TOO_SHORT)
        unread = Truncation(0, 0, len(encoding.ids), len(encoding.ids))
        return _listed(sentences, members, [reason] * len(sentences), chunks, method, unread, skip)


def _listed(
    sentences: Sequence[Sentence],
    members: Sequence[Sequence[int]],
    skips: Sequence[SentenceSkip | None],
    chunks: tuple[Chunk, ...],
    method: Method,
    truncation: Truncation,
    skip: AnswerSkip,
) -> AnswerGrounding:
    """An answer without scores: every sentence with its reason."""
    return AnswerGrounding(
        method=method,
        sentences=tuple(
            SentenceGrounding(index=index, sentence=sentence, n_tokens=len(tokens), skip_reason=reason)
            for index, (sentence, tokens, reason) in enumerate(zip(sentences, members, skips, strict=True))
        ),
        chunks=chunks,
        truncation=truncation,
        skip_reason=skip,
    )


def _answer_skip(exchange: Exchange, sentences: Sequence[Sentence], chunks: Sequence[Chunk]) -> AnswerSkip | None:
    if not exchange.answer.strip():
        return AnswerSkip.EMPTY_ANSWER
    if not chunks:
        return AnswerSkip.NO_PASSAGES
    if all(is_refusal(exchange.answer[sentence.start : sentence.end]) for sentence in sentences):
        return AnswerSkip.REFUSAL
    return None
