"""From token scores to sentence features: which token belongs to which sentence, and means over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gasp_core.divergence import LN_2
from gasp_core.grounding import Chunk, ChunkDrop, Sentence, SentenceGrounding, SentenceSkip
from gasp_core.plan import Plan
from gasp_core.text.skips import skip_for

if TYPE_CHECKING:
    from torch import Tensor

# A drop of less is no reaction: it is within what the precision of the passes moves a sentence.
MIN_REACTION_NATS = 0.05


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
    plan: Plan,
    chunks: Sequence[Chunk],
    log_probabilities: Tensor,
    divergences: Tensor,
) -> SentenceGrounding:
    """Average token scores (variants, A) over one sentence. Means are taken in float64."""
    if skip := skip_for(sentence, tokens, len(plan.answer_ids)):
        return SentenceGrounding(index=index, sentence=sentence, n_tokens=len(tokens), skip_reason=skip)
    means = log_probabilities[:, tokens].double().mean(-1)  # (variants,)
    spread = divergences[:, tokens].double().mean(-1)  # (variants,)
    if not (means.isfinite().all() and spread.isfinite().all()):
        return SentenceGrounding(
            index=index, sentence=sentence, n_tokens=len(tokens), skip_reason=SentenceSkip.NOT_FINITE
        )
    reactions = dict(
        zip(plan.removals, zip((means[0] - means[2:]).tolist(), spread[2:].tolist(), strict=True), strict=True)
    )
    drops = _chunk_drops(plan, chunks, reactions)
    return SentenceGrounding(
        index=index,
        sentence=sentence,
        n_tokens=len(tokens),
        gap=float(means[0] - means[1]),
        jsd_no_context=min(LN_2, float(spread[1])),
        surprisal=max(0.0, -float(means[0])),
        drops=drops,
        supporting_chunk=supporting_chunk(drops),
        contradicting_chunk=contradicting_chunk(drops),
    )


def supporting_chunk(drops: Sequence[ChunkDrop]) -> int | None:
    """The chunk whose removal costs the sentence most; the first of equals; None if none reacts."""
    best = max(drops, key=lambda drop: drop.drop, default=None)
    return best.chunk if best is not None and best.drop >= MIN_REACTION_NATS else None


def contradicting_chunk(drops: Sequence[ChunkDrop]) -> int | None:
    """The chunk whose removal helps the sentence most; the first of equals; None if none does."""
    worst = min(drops, key=lambda drop: drop.drop, default=None)
    return worst.chunk if worst is not None and worst.drop <= -MIN_REACTION_NATS else None


_Reactions = Mapping[tuple[int, ...], tuple[float, float]]  # removed groups to drop and divergence


def _chunk_drops(plan: Plan, chunks: Sequence[Chunk], reactions: _Reactions) -> tuple[ChunkDrop, ...]:
    """Every chunk that the model read gets the drop of its group, which was removed as a whole."""
    return tuple(
        ChunkDrop(index, *reactions[chunks[index].group,])
        for index in plan.chunks
        if (chunks[index].group,) in reactions
    )
