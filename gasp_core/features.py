"""From token scores to sentence features: which token belongs to which sentence, and means over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gasp_core.divergence import LN_2
from gasp_core.grounding import Chunk, ChunkDrop, Sentence, SentenceGrounding, SentenceSkip
from gasp_core.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor


def assign_tokens(answer: str, sentences: Sequence[Sentence], spans: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Token indices per sentence. A token belongs to the sentence that holds its first non-space character.

    Byte-level tokens carry the blank before their word, so the character where a token starts may still belong to
    the sentence before.
    """
    starts = [sentence.start for sentence in sentences]
    members: list[list[int]] = [[] for _ in sentences]
    for token, (start, end) in enumerate(spans):
        anchor = next((at for at in range(start, end) if not answer[at].isspace()), start)
        members[max(0, bisect_right(starts, anchor) - 1)].append(token)
    return members


def sentence_grounding(
    index: int,
    sentence: Sentence,
    tokens: Sequence[int],
    *,
    skip: SentenceSkip | None = None,
    plan: Plan,
    chunks: Sequence[Chunk],
    log_probabilities: Tensor,
    divergences: Tensor,
    readings: Tensor,
) -> SentenceGrounding:
    """Average token scores (variants, A) and readings (A, M) over one sentence, in float64, unless it is skipped.

    What supports it is for others to say.
    """
    if skip:
        return SentenceGrounding(index=index, sentence=sentence, n_tokens=len(tokens), skip_reason=skip)
    means = log_probabilities[:, tokens].double().mean(-1)  # (variants,)
    spread = divergences[:, tokens].double().mean(-1)  # (variants,)
    read = readings[tokens].double().mean(0)  # (M,)
    if not all(values.isfinite().all() for values in (means, spread, read)):
        return SentenceGrounding(
            index=index, sentence=sentence, n_tokens=len(tokens), skip_reason=SentenceSkip.NOT_FINITE
        )
    reactions = dict(
        zip(plan.removals, zip((means[0] - means[2:]).tolist(), spread[2:].tolist(), strict=True), strict=True)
    )
    return SentenceGrounding(
        index=index,
        sentence=sentence,
        n_tokens=len(tokens),
        gap=float(means[0] - means[1]),
        jsd_no_context=min(LN_2, float(spread[1])),
        surprisal=max(0.0, -float(means[0])),
        drops=_chunk_drops(plan, chunks, reactions),
        readings=tuple(read.tolist()),
    )


def removal_drops(plan: Plan, tokens: Sequence[int], log_probabilities: Tensor) -> dict[tuple[int, ...], float]:
    """What a sentence loses, in nats, by each of the plan's removals; of token scores (variants, A)."""
    means = log_probabilities[:, tokens].double().mean(-1)  # (variants,)
    return dict(zip(plan.removals, (means[0] - means[2:]).tolist(), strict=True))


_Reactions = Mapping[tuple[int, ...], tuple[float, float]]  # removed groups to drop and divergence


def _chunk_drops(plan: Plan, chunks: Sequence[Chunk], reactions: _Reactions) -> tuple[ChunkDrop, ...]:
    """Every chunk that the model read gets the drop of its group, which was removed as a whole."""
    return tuple(
        ChunkDrop(index, *reactions[chunks[index].group,])
        for index in plan.chunks
        if (chunks[index].group,) in reactions
    )
