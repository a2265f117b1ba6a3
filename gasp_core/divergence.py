"""Log-probabilities of the answer and divergences between the full context and every other variant."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

# Logits of one tile and one variant, in bytes. Several tensors of this size live at once.
TILE_BYTES = 16 * 1024 * 1024

LN_2 = math.log(2.0)


def token_scores(head: Callable[[Tensor], Tensor], states: Tensor, answer_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Score each answer token under each variant.

    ``states`` (variants, A, D) are hidden states with variant 0 the full context; ``head`` maps (N, D) to float32
    logits (N, V); ``answer_ids`` (A,) are the tokens. Returns float32 log-probabilities (variants, A) in nats and
    Jensen-Shannon divergences (variants, A) from variant 0, in [0, ln 2]. Worked through in tiles of answer
    positions, one variant at a time, so that the logits of the whole answer are never held.
    """
    variants, length, _ = states.shape
    log_probabilities = torch.empty(variants, length, device=states.device)
    divergences = torch.zeros(variants, length, device=states.device)
    vocabulary = head(states[0, :1]).shape[-1]
    rows = max(1, TILE_BYTES // (4 * vocabulary))
    for start in range(0, length, rows):
        tile = slice(start, min(start + rows, length))
        targets = answer_ids[tile, None]
        full = torch.log_softmax(head(states[0, tile]), dim=-1)  # (rows, V)
        log_probabilities[0, tile] = full.gather(-1, targets)[:, 0]
        for variant in range(1, variants):
            other = torch.log_softmax(head(states[variant, tile]), dim=-1)  # (rows, V)
            log_probabilities[variant, tile] = other.gather(-1, targets)[:, 0]
            divergences[variant, tile] = jensen_shannon(full, other)
    return log_probabilities, divergences


def jensen_shannon(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats, in [0, ln 2], of log-distributions (…, V) along the last axis.

    The mixture is formed in log space, so that equal distributions give 0 to rounding; an epsilon inside the
    logarithm would not.
    """
    log_mixture = torch.logaddexp(log_p, log_q) - LN_2
    left = (log_p.exp() * (log_p - log_mixture)).sum(-1)
    right = (log_q.exp() * (log_q - log_mixture)).sum(-1)
    return (0.5 * (left + right)).clamp(0.0, LN_2)
