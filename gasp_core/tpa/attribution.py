"""From an exchange to the sources of its answer's tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gasp_core.features import assign_tokens
from gasp_core.grounding import AnswerSkip, Exchange, Sentence, SentenceSkip
from gasp_core.memory import in_memory
from gasp_core.model import LanguageModel
from gasp_core.plan import Limits, Plan, plan_exchange
from gasp_core.template import PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer
from gasp_core.text.skips import answer_skip, sentence_skips, skips_of
from gasp_core.tpa.reading import BLOCK_TOKENS, token_sources
from gasp_core.tpa.shares import PromptLayout
from gasp_core.tpa.sources import AnswerSources, Source


def attribute_answer(
    model: LanguageModel,
    exchange: Exchange,
    *,
    template: PromptTemplate = PLAIN,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    max_chunks: int = 5,
    block_tokens: int = BLOCK_TOKENS,
) -> AnswerSources:
    """Attribute each token of the answer to the seven sources; one pass per window of the context.

    ``template``, ``limits`` and ``max_chunks`` are as for GroundingScorer and lay the same prompt out;
    ``block_tokens`` bounds memory and moves numbers by rounding only. A sentence is read by the window that makes it
    likeliest. An answer that cannot be read has a skip reason for every sentence. Raises ModelUnsupported if the
    model's layers are not read here, and ModelOutOfMemory if the exchange is too much for the device.
    """
    sentences = split_answer(exchange.answer)
    chunks = context_chunks(exchange.passages, max_chunks)
    if skip := answer_skip(exchange, sentences, chunks):
        return _unread(model, exchange, sentences, skip)
    plans = plan_exchange(exchange, chunks, model=model, template=template, limits=limits)
    if not plans:
        return _unread(model, exchange, sentences, AnswerSkip.QUESTION_TOO_LONG)
    context_start = len(model.beginning()) + len(model.encode(template.head).ids)
    windows = in_memory(
        lambda: [_read(model, plan, context_start, block_tokens) for plan in plans],
        model=model.name,
        what=f"the sources of an answer do not fit {model.device}",
    )
    # The answer is laid out alike in every window.
    members = assign_tokens(exchange.answer, sentences, plans[0].answer_spans)
    values = _best(windows, members)
    skips = [
        skip or _skip_for_values(values[list(tokens)])
        for skip, tokens in zip(
            sentence_skips(exchange.answer, sentences, members, len(plans[0].answer_ids)), members, strict=True
        )
    ]
    return _answer_sources(exchange, sentences, members, skips, plans[0].answer_spans, values)


def _read(model: LanguageModel, plan: Plan, context_start: int, block_tokens: int) -> NDArray[np.float64]:
    """The sources (T, 7) by one window of the context, with NaN for the tokens that are past the model's window."""
    layout = PromptLayout(context_start, plan.context_end, len(plan.prompts[0]))
    read = token_sources(model, plan.prompts[0], plan.answer_ids, layout, block_tokens=block_tokens)
    values = np.full((len(plan.answer_spans), len(Source)), np.nan)
    values[: len(read)] = read.numpy()
    return values


def _best(windows: Sequence[NDArray[np.float64]], members: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Each sentence's rows from the window with its largest log-probability: the one with its largest gap, too."""
    best = windows[0].copy()
    for tokens in members:
        likelihoods = [_log_probability(values[list(tokens)]) for values in windows]
        best[list(tokens)] = windows[int(np.argmax(likelihoods))][list(tokens)]
    return best


def _log_probability(values: NDArray[np.float64]) -> float:
    # The sum is a probability to rounding only, so one near 0 may fall below it.
    return float(np.log(np.maximum(np.nan_to_num(values.sum(axis=1)), np.finfo(np.float32).tiny)).sum())


def _skip_for_values(values: NDArray[np.float64]) -> SentenceSkip | None:
    return None if np.isfinite(values).all() else SentenceSkip.NOT_FINITE


def _unread(model: LanguageModel, exchange: Exchange, sentences: Sequence[Sentence], skip: AnswerSkip) -> AnswerSources:
    spans = model.encode(exchange.answer).spans
    members = assign_tokens(exchange.answer, sentences, spans)
    values = np.full((len(spans), len(Source)), np.nan)
    return _answer_sources(exchange, sentences, members, skips_of(skip, exchange.answer, sentences), spans, values)


def _answer_sources(
    exchange: Exchange,
    sentences: Sequence[Sentence],
    members: Sequence[Sequence[int]],
    skips: Sequence[SentenceSkip | None],
    spans: Sequence[tuple[int, int]],
    values: NDArray[np.float64],
) -> AnswerSources:
    return AnswerSources(
        answer=exchange.answer,
        sentences=tuple(sentences),
        members=tuple(tuple(tokens) for tokens in members),
        skips=tuple(skips),
        token_spans=tuple(spans),
        values=values,
    )
