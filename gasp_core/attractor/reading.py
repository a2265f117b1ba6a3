"""From an exchange to the trajectories of its sentences.

The answer is read with none of the context, with its first chunks, and so on to all of it. Each of these contexts is
the beginning of the next one, so that they share one trunk, and each costs the question and the answer only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from gasp_core.attractor.growth import growing
from gasp_core.attractor.trajectory import AnswerTrajectories, Trajectory
from gasp_core.divergence import token_scores
from gasp_core.features import assign_tokens
from gasp_core.grounding import AnswerSkip, Exchange, Sentence, SentenceSkip
from gasp_core.memory import in_memory
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import Passes
from gasp_core.plan import Limits, Plan, plan_exchange
from gasp_core.template import PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer
from gasp_core.text.skips import answer_skip, sentence_skips, skips_of

# A trajectory with the gap of its window, in nats a token; None where a number is not finite.
_Found = tuple[float, Trajectory] | None


def read_trajectories(
    model: LanguageModel,
    passes: Passes,
    exchange: Exchange,
    *,
    template: PromptTemplate = PLAIN,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    max_chunks: int = 5,
) -> AnswerTrajectories:
    """Follow the final states of each sentence while the context grows chunk by chunk, in its order.

    ``template``, ``limits`` and ``max_chunks`` are as for GroundingScorer and lay the same prompts out; ``passes`` run
    the model. Chunks that say nearly the same come together, and more than ``MAX_STEPS`` come several at a time. A
    sentence is read by the window with its largest gap. An answer that cannot be read has a skip reason for every
    sentence. Raises ModelOutOfMemory if the exchange is too much for the device.
    """
    sentences = split_answer(exchange.answer)
    chunks = context_chunks(exchange.passages, max_chunks)
    if skip := answer_skip(exchange, sentences, chunks):
        return _unread(exchange.answer, sentences, skip)
    plans = plan_exchange(exchange, chunks, model=model, template=template, limits=limits, removals=growing)
    if not plans:
        return _unread(exchange.answer, sentences, AnswerSkip.QUESTION_TOO_LONG)
    # The answer is laid out alike in every window.
    members = assign_tokens(exchange.answer, sentences, plans[0].answer_spans)
    skips = sentence_skips(exchange.answer, sentences, members, len(plans[0].answer_ids))
    read = [tokens for tokens, skip in zip(members, skips, strict=True) if skip is None]
    found = iter(
        in_memory(
            lambda: _by_best_window(model, passes, plans, read),
            model=model.name,
            what=f"the trajectories of an answer do not fit {model.device}",
            forget=passes.forget,
        )
    )
    return _answer_trajectories(sentences, [(skip, None if skip else next(found)) for skip in skips])


def _by_best_window(
    model: LanguageModel, passes: Passes, plans: Sequence[Plan], members: Sequence[Sequence[int]]
) -> list[Trajectory | None]:
    """The trajectory of each sentence of these tokens from the window with its largest gap."""
    if not members:
        return []
    # One window at a time, so that no more than its states are held.
    windows = [_by_window(model, passes, plan, members) for plan in plans]
    return [_best(found) for found in zip(*windows, strict=True)]


def _best(found: Sequence[_Found]) -> Trajectory | None:
    known = [one for one in found if one is not None]
    return max(known, key=lambda one: one[0])[1] if known else None


@torch.inference_mode()
def _by_window(model: LanguageModel, passes: Passes, plan: Plan, members: Sequence[Sequence[int]]) -> list[_Found]:
    """What one window of the context tells of each sentence."""
    states = passes.answer_states([plan])[0][..., : model.width]  # (variants, A, D)
    answer_ids = torch.tensor(plan.answer_ids, device=model.device)
    log_probabilities, _ = token_scores(model.logits, model.vocabulary, states[:2], answer_ids)  # (2, A)
    gaps = log_probabilities[0] - log_probabilities[1]
    # From no context (1) by the growing ones (2 …) to the whole (0).
    order = [1, *range(2, len(plan.prompts)), 0]
    return [
        _found(float(gaps[tokens].double().mean()), states[:, tokens].double().mean(1)[order].cpu())
        for tokens in map(list, members)
    ]


def _found(gap: float, path: Tensor) -> _Found:
    """The trajectory along ``path`` (k + 1, D) in float64."""
    steps = path.diff(dim=0)  # (k, D)
    norm, products = path[-1].norm(), steps @ steps.T  # (k, k)
    # Nothing is a share of a state of length 0.
    if not (math.isfinite(gap) and norm.isfinite() and norm > 0 and products.isfinite().all()):
        return None
    return gap, Trajectory(float(norm), products.numpy())


def _unread(answer: str, sentences: Sequence[Sentence], skip: AnswerSkip) -> AnswerTrajectories:
    return _answer_trajectories(sentences, [(reason, None) for reason in skips_of(skip, answer, sentences)])


def _answer_trajectories(
    sentences: Sequence[Sentence], found: Sequence[tuple[SentenceSkip | None, Trajectory | None]]
) -> AnswerTrajectories:
    return AnswerTrajectories(
        sentences=tuple(sentences),
        skips=tuple(skip or (SentenceSkip.NOT_FINITE if one is None else None) for skip, one in found),
        trajectories=tuple(one for _, one in found),
    )
