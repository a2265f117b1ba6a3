"""Log-probabilities of the answer and divergences between the full context and every other variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

# Logits of one tile of answer positions under one variant: enough rows to fill the matrix unit. Two tensors of this
# size live at once, whatever the number of variants.
CPU_TILE_BYTES = 32 * 1024 * 1024
CUDA_TILE_BYTES = 512 * 1024 * 1024

# What is compared at once within a tile. A CPU then works in its cache, in memory that it has touched before.
CPU_BLOCK_BYTES = 1024 * 1024
CUDA_BLOCK_BYTES = 128 * 1024 * 1024

LN_2 = math.log(2.0)
_TINY = torch.finfo(torch.float32).tiny


def token_scores(
    head: Callable[[Tensor], Tensor], vocabulary: int, states: Tensor, answer_ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Score each answer token under each variant.

    ``states`` (variants >= 2, A, D) are hidden states with variant 0 the full context; ``head`` maps (N, D) to logits
    (N, V), V being ``vocabulary``; ``answer_ids`` (A,) are the tokens. Returns float32 log-probabilities (variants, A)
    in nats and Jensen-Shannon divergences (variants, A) from variant 0, in [0, ln 2]. Worked through in tiles of
    answer positions, one variant at a time, so that the logits of the whole answer are never held.
    """
    variants, length, _ = states.shape
    log_probabilities = torch.empty(variants, length, device=states.device)
    divergences = torch.zeros(variants, length, device=states.device)
    on_cuda = states.device.type == "cuda"
    row_bytes = 4 * vocabulary
    for tile in _slices(0, length, (CUDA_TILE_BYTES if on_cuda else CPU_TILE_BYTES) // row_bytes):
        blocks = list(_slices(tile.start, tile.stop, (CUDA_BLOCK_BYTES if on_cuda else CPU_BLOCK_BYTES) // row_bytes))
        full_logits = head(states[0, tile])  # (rows, V)
        for variant in range(1, variants):
            logits = head(states[variant, tile])
            for at in blocks:
                # The full distribution is formed anew for each variant: that costs less than to keep it.
                full, other = _log_softmax(full_logits, at, tile), _log_softmax(logits, at, tile)
                log_probabilities[0, at] = _chosen(full, answer_ids[at])
                log_probabilities[variant, at] = _chosen(other, answer_ids[at])
                divergences[variant, at] = jensen_shannon(full, other)
    return log_probabilities, divergences


def _log_softmax(logits: Tensor, at: slice, tile: slice) -> Tensor:
    """Float32 log-probabilities of the answer positions ``at`` out of the logits of a tile."""
    return torch.log_softmax(logits[at.start - tile.start : at.stop - tile.start], dim=-1, dtype=torch.float32)


def _chosen(log_probabilities: Tensor, tokens: Tensor) -> Tensor:
    """Of distributions (n, V), the entries (n,) of the tokens (n,)."""
    return log_probabilities.gather(-1, tokens[:, None])[:, 0]


def jensen_shannon(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats, in [0, ln 2], of float32 log-distributions (…, V) along the last axis.

    The sum of the two divergences from the mixture, without an epsilon inside the logarithm, so that equal
    distributions give 0 to rounding.
    """
    p, q = log_p.exp(), log_q.exp()
    # Where both underflow their terms are 0, and the bound only keeps 0 times infinity out.
    log_mixture = torch.add(p, q).mul_(0.5).clamp_min_(_TINY).log_()
    left = torch.linalg.vecdot(p, log_p - log_mixture)
    right = torch.linalg.vecdot(q, log_q - log_mixture)
    divergence: Tensor = (0.5 * (left + right)).clamp_(0.0, LN_2)
    return divergence


def _slices(start: int, end: int, rows: int) -> Iterator[slice]:
    """Cut ``[start, end)`` into even pieces of at most ``rows``, or of one: a small rest costs nearly a whole piece."""
    pieces = math.ceil((end - start) / max(1, rows))
    even = math.ceil((end - start) / pieces)
    for at in range(start, end, even):
        yield slice(at, min(at + even, end))
