"""The scorer: exchanges in, the grounding of every sentence out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from gasp_core.divergence import token_scores
from gasp_core.errors import ModelUnsupported
from gasp_core.features import assign_tokens, removal_drops, sentence_grounding
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
from gasp_core.memory import in_memory
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.passes.taps import Tap, joint_slopes
from gasp_core.plan import Limits, Plan, Removals, each_group, no_removals, plan_exchange
from gasp_core.progress import tell_progress
from gasp_core.support import Drops, Removal
from gasp_core.support_search import SupportSearch, with_rest_together
from gasp_core.template import PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer
from gasp_core.text.skips import answer_skip, sentence_skips, skips_of
from gasp_core.tokens import AnswerTokens, WindowScores, answer_tokens, no_tokens
from gasp_core.worst_span import with_worst_spans

# Raised whenever segmentation, passes or aggregation change what a score means.
METHOD_VERSION = "gasp-3"
MASKED_METHOD_VERSION = f"{METHOD_VERSION}-masked"
MAX_CHUNKS = 5


@dataclass(frozen=True, slots=True)
class _Work:
    """One exchange that has something to score."""

    exchange: Exchange
    sentences: tuple[Sentence, ...]
    chunks: tuple[Chunk, ...]
    plans: tuple[Plan, ...]
    members: list[list[int]]
    skips: list[SentenceSkip | None]


class GroundingScorer:
    """Scores answers with one model under one template. Not for use by several threads at once.

    ``max_chunks`` is into how many chunks a single long passage is grouped; several passages are the chunks
    themselves. ``masked`` hides a removed chunk from question and answer instead of taking it out: an approximation
    of leave-one-out, at a half of its cost. ``passes`` runs the model (None: what suits it and its device).

    Raises ModelUnsupported if the model, and ValueError if the template, does not allow masking.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        template: PromptTemplate = PLAIN,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        max_chunks: int = MAX_CHUNKS,
        masked: bool = False,
        passes: Passes | None = None,
    ) -> None:
        self._model = model
        self._template = template
        self._limits = limits
        self._max_chunks = max_chunks
        self._masked = masked
        self._passes = passes or choose_passes(model).passes
        self._slopes: Tensor | None = None
        self._tell: Callable[[], None] = lambda: None
        if masked and not self._passes.can_hide:
            raise ModelUnsupported(model.name, "it shares no prefixes, so chunks cannot be masked; leave them out")
        if masked and template.spliced:
            raise ValueError(f"the chunks of template {template.name} are not tokens of their own, to be masked")

    @property
    def identity(self) -> ScorerIdentity:
        """Everything that the scores depend on; limits and chunks are named where they are not the usual ones."""
        version = MASKED_METHOD_VERSION if self._masked else METHOD_VERSION
        chunks = () if self._max_chunks == MAX_CHUNKS else (f"chunks-{self._max_chunks}",)
        return ScorerIdentity(
            model=self._model.name,
            revision=self._model.revision,
            dtype=self._model.dtype,
            template=self._template.name,
            method=" ".join([version, *self._limits.marks, *chunks]),
        )

    @property
    def passes(self) -> Passes:
        """What runs the model."""
        return self._passes

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score each answer; the results are in the order of ``exchanges`` and do not depend on each other.

        TWO_PASS reads the answer with the whole context and with none. LEAVE_ONE_OUT also reads it without each
        chunk, fills ``drops`` and says what supports a sentence; where a gap is large and no drop near it, the answer
        is read without several chunks, too (``SupportSearch``). An answer that cannot be scored has a ``skip_reason``;
        its sentences are listed all the same. Raises ModelOutOfMemory if they are too much for the device together.
        """
        return [answer.grounding for answer in self.score_tokens(exchanges, method)]

    def score_tokens(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerTokens]:
        """What ``score`` gives, with the scores of the tokens that it was averaged from."""
        removals = no_removals if method is Method.TWO_PASS else each_group
        prepared = [self._prepare(exchange, removals, method) for exchange in exchanges]
        work = [item for item in prepared if isinstance(item, _Work)]
        scored = iter(self._run_in_memory(work, method))
        return [no_tokens(item) if isinstance(item, AnswerGrounding) else next(scored) for item in prepared]

    def reading(self, taps: Sequence[Tap]) -> Self:
        """The same scorer with what these taps read in the ``readings`` of sentences; it shares the model.

        Raises ModelUnsupported if the model has no such layers.
        """
        other = copy.copy(self)
        other._passes = self._passes.reading(taps)  # noqa: SLF001 - a copy of our own
        other._slopes = joint_slopes(taps)  # noqa: SLF001 - as above
        return other

    def within(self, limits: Limits) -> Self:
        """The same scorer under other limits; it shares the model."""
        other = copy.copy(self)
        other._limits = limits  # noqa: SLF001 - a copy of our own
        return other

    def tell_progress(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` between any two pieces of work from now on: blocks of a forward pass, and exchanges."""
        self._tell = tell
        tell_progress(self._model, tell)

    def _prepare(self, exchange: Exchange, removals: Removals, method: Method) -> _Work | AnswerGrounding:
        self._tell()
        sentences = split_answer(exchange.answer)
        chunks = context_chunks(exchange.passages, self._max_chunks)
        if method is Method.LEAVE_ONE_OUT:
            chunks = with_rest_together(chunks)
        if skip := answer_skip(exchange, sentences, chunks):
            return self._skipped(exchange, sentences, chunks, method, skip)
        plans = self._plans(exchange, chunks, removals)
        if not plans:
            return self._skipped(exchange, sentences, chunks, method, AnswerSkip.QUESTION_TOO_LONG)
        # The answer is laid out alike in every window.
        members = assign_tokens(exchange.answer, sentences, plans[0].answer_spans)
        skips = sentence_skips(exchange.answer, sentences, members, len(plans[0].answer_ids))
        if all(skips):
            return _listed(sentences, members, skips, chunks, method, plans[0].truncation, AnswerSkip.NOTHING_TO_SCORE)
        return _Work(exchange, sentences, chunks, plans, members, skips)

    def _plans(self, exchange: Exchange, chunks: tuple[Chunk, ...], removals: Removals) -> tuple[Plan, ...]:
        return plan_exchange(
            exchange,
            chunks,
            model=self._model,
            template=self._template,
            limits=self._limits,
            removals=removals,
            masked=self._masked,
        )

    def _run_in_memory(self, work: Sequence[_Work], method: Method) -> list[AnswerTokens]:
        return in_memory(
            lambda: self._run(work, method),
            model=self._model.name,
            what=f"{len(work)} exchanges at once do not fit {self._model.device}",
            forget=self._passes.forget,
        )

    @torch.inference_mode()
    def _run(self, work: Sequence[_Work], method: Method) -> list[AnswerTokens]:
        if not work:
            return []
        states = iter(self._passes.answer_states([plan for item in work for plan in item.plans]))
        results = []
        for item in work:
            windows = [self._token_scores(plan, next(states)) for plan in item.plans]
            versions = [_window(item, plan, scores) for plan, scores in zip(item.plans, windows, strict=True)]
            best = [_best_window(sentence) for sentence in zip(*versions, strict=True)]
            spans = item.plans[0].answer_spans
            sentences = with_worst_spans(item.exchange.answer, best, spans, item.members, windows, self._slopes)
            if method is Method.LEAVE_ONE_OUT:
                sentences = self._supported(item, sentences)
            # Only non-finite numbers can still leave an answer without a score here.
            scored = any(sentence.gap is not None for sentence in sentences)
            grounding = AnswerGrounding(
                method=method,
                sentences=sentences,
                chunks=item.chunks,
                truncation=item.plans[0].truncation,
                skip_reason=None if scored else AnswerSkip.NOTHING_TO_SCORE,
                n_windows=len(item.plans),
            )
            results.append(answer_tokens(grounding, spans, item.members, windows))
        return results

    def _supported(self, item: _Work, sentences: Sequence[SentenceGrounding]) -> tuple[SentenceGrounding, ...]:
        """The sentences with what supports them; prompts are read for it where leave-one-out does not tell."""
        windows = [tuple(sorted({item.chunks[chunk].group for chunk in plan.chunks})) for plan in item.plans]
        search = SupportSearch(sentences, item.chunks, windows)
        while any(wanted := search.wanted()):
            self._read_more(item, wanted, search)
        return search.sentences()

    def _read_more(self, item: _Work, wanted: Sequence[Sequence[Removal]], search: SupportSearch) -> None:
        """Read the answer under further removals, those that are wanted of each window."""
        of_window = iter(wanted)
        plans = self._plans(item.exchange, item.chunks, lambda _groups: tuple(next(of_window)))
        asked = [(window, plan) for window, plan in enumerate(plans) if plan.removals]
        states = self._passes.answer_states([plan for _, plan in asked])
        for (window, plan), found in zip(asked, states, strict=True):
            search.learn(window, _drops_by_sentence(item, plan, self._token_scores(plan, found)))

    def _token_scores(self, plan: Plan, states: Tensor) -> WindowScores:
        self._tell()
        answer_ids = torch.tensor(plan.answer_ids, device=self._model.device)
        width = self._model.width
        log_probabilities, divergences = token_scores(
            self._model.logits, self._model.vocabulary, states[..., :width], answer_ids
        )
        # Averaging is done where the many small steps cost nothing.
        return WindowScores(log_probabilities.cpu(), divergences.cpu(), states[0, :, width:].cpu())

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
        unread = Truncation(0, 0, len(encoding.ids), len(encoding.ids))
        skips = skips_of(skip, exchange.answer, sentences)
        return _listed(sentences, members, skips, chunks, method, unread, skip)


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


def _window(item: _Work, plan: Plan, scores: WindowScores) -> list[SentenceGrounding]:
    """Every sentence by one window of the context."""
    return [
        sentence_grounding(
            index,
            sentence,
            tokens,
            skip=skip,
            plan=plan,
            chunks=item.chunks,
            log_probabilities=scores.log_probabilities,
            divergences=scores.divergences,
            readings=scores.readings,
        )
        for index, (sentence, tokens, skip) in enumerate(zip(item.sentences, item.members, item.skips, strict=True))
    ]


def _drops_by_sentence(item: _Work, plan: Plan, scores: WindowScores) -> Callable[[int], Drops]:
    return lambda sentence: removal_drops(plan, item.members[sentence], scores.log_probabilities)


def _best_window(versions: Sequence[SentenceGrounding]) -> SentenceGrounding:
    """The sentence as the window sees it that supports it best; one that has no score, as the first window has it."""
    best = max(range(len(versions)), key=lambda window: (versions[window].gap is not None, versions[window].gap or 0.0))
    return replace(versions[best], window=best if versions[best].gap is not None else 0)
