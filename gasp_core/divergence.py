"""Log-probabilities of the answer and divergences between the full context and every other variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

# Float32 logits of one tile of answer positions and one variant, in bytes: enough rows to fill the matrix unit. Three
# tensors of this size live at once, whatever the number of variants.
CPU_TILE_BYTES = 24 * 1024 * 1024
CUDA_TILE_BYTES = 512 * 1024 * 1024

# What is compared at once within a tile; a CPU then works in its cache.
CPU_BLOCK_BYTES = 1024 * 1024
CUDA_BLOCK_BYTES = 128 * 1024 * 1024

LN_2 = math.log(2.0)
_TINY = torch.finfo(torch.float32).tiny


def token_scores(head: Callable[[Tensor], Tensor], states: Tensor, answer_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Score each answer token under each variant.

    ``states`` (variants, A, D) are hidden states with variant 0 the full context; ``head`` maps (N, D) to logits
    (N, V); ``answer_ids`` (A,) are the tokens. Returns float32 log-probabilities (variants, A) in nats and
    Jensen-Shannon divergences (variants, A) from variant 0, in [0, ln 2]. Worked through in tiles of answer
    positions, one variant at a time, so that the logits of the whole answer are never held.
    """
    variants, length, _ = states.shape
    log_probabilities = torch.empty(variants, length, device=states.device)
    divergences = torch.zeros(variants, length, device=states.device)
    on_cuda = states.device.type == "cuda"
    vocabulary = head(states[0, :1]).shape[-1]
    block_bytes = CUDA_BLOCK_BYTES if on_cuda else CPU_BLOCK_BYTES
    for tile in _slices(length, CUDA_TILE_BYTES if on_cuda else CPU_TILE_BYTES, vocabulary):
        targets = answer_ids[tile, None]
        full = torch.log_softmax(head(states[0, tile]), dim=-1, dtype=torch.float32)  # (rows, V)
        full_probabilities = full.exp()
        log_probabilities[0, tile] = full.gather(-1, targets)[:, 0]
        for variant in range(1, variants):
            logits = head(states[variant, tile])
            for block in _slices(len(logits), block_bytes, vocabulary):
                at = slice(tile.start + block.start, tile.start + block.stop)
                other = torch.log_softmax(logits[block], dim=-1, dtype=torch.float32)
                log_probabilities[variant, at] = other.gather(-1, targets[block])[:, 0]
                divergences[variant, at] = _divergence(full[block], full_probabilities[block], other)
    return log_probabilities, divergences


def jensen_shannon(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats, in [0, ln 2], of float32 log-distributions (…, V) along the last axis.

    The sum of the two divergences from the mixture, without an epsilon inside the logarithm, so that equal
    distributions give 0 to rounding.
    """
    return _divergence(log_p, log_p.exp(), log_q)


def _divergence(log_p: Tensor, p: Tensor, log_q: Tensor) -> Tensor:
    """As ``jensen_shannon``, with p at hand."""
    q = log_q.exp()
    # Where both underflow their terms are 0, and the bound only keeps 0 times infinity out.
    log_mixture = torch.add(p, q).mul_(0.5).clamp_min_(_TINY).log_()
    left = torch.linalg.vecdot(p, log_p - log_mixture)
    right = torch.linalg.vecdot(q, log_q - log_mixture)
    divergence: Tensor = (0.5 * (left + right)).clamp_(0.0, LN_2)
    return divergence


def _slices(length: int, max_bytes: int, vocabulary: int) -> Iterator[slice]:
    """Cut rows of float32 logits into pieces of at most ``max_bytes``; at least a row each."""
    rows = max(1, max_bytes // (4 * vocabulary))
    for at in range(0, length, rows):
        yield slice(at, min(at + rows, length))
