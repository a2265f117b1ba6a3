"""How an attention block's share is split: over its heads, and over what they attend to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """Which positions of a sequence are what: the context is ``[context_start, context_end)`` of the prompt.

    Positions from ``prompt_end`` on are the answer's; the rest of the prompt counts as the query.
    """

    context_start: int
    context_end: int
    prompt_end: int

    def membership(self, positions: Tensor) -> Tensor:
        """One-hot rows (N, 3) over query, context and past answer of positions (N,)."""
        is_context = (positions >= self.context_start) & (positions < self.context_end)
        is_answer = positions >= self.prompt_end
        return torch.stack([~(is_context | is_answer), is_context, is_answer], dim=-1).float()


def head_weights(mixed: Tensor, projection: Tensor, unembedding: Tensor) -> Tensor:
    """The part (N, heads) of each head in an attention block's share; a row sums to 1.

    This is the project's reading of the paper, whose text does not fix it: a softmax over heads of the head's own
    contribution to the logit of the token that follows. ``mixed`` (N, heads, size) are the heads' outputs,
    ``projection`` (D, heads x size) the output projection and ``unembedding`` (N, D) the tokens' rows of the
    unembedding. A bias of the projection belongs to no head and is left out.
    """
    # The token's row is carried back through the projection once, which is less than to project every head.
    back = (unembedding.float() @ projection.float()).view_as(mixed)
    return torch.softmax((mixed.float() * back).sum(dim=-1), dim=-1)


def group_masses(attention: Tensor, last_position: int, layout: PromptLayout) -> Tensor:
    """The attention (N, heads, 4) of each row to query, context, past answer and its own position.

    ``attention`` (heads, N, K) are weights of N successive positions, the last of which is ``last_position``, as are
    the last of the K keys.
    """
    _, rows, keys = attention.shape
    positions = torch.arange(last_position + 1 - keys, last_position + 1, device=attention.device)
    earlier = attention.float().tril(keys - rows - 1)
    own = attention.float().diagonal(keys - rows, dim1=-2, dim2=-1)  # (heads, N)
    masses = torch.cat([earlier @ layout.membership(positions), own[..., None]], dim=-1)
    return masses.transpose(0, 1)


def split_share(share: Tensor, weights: Tensor, masses: Tensor) -> Tensor:
    """Split shares (N,) by head weights (N, heads) and masses (N, heads, 4) into (N, 4); a row sums to its share.

    Masses are taken relative to their sum: 16-bit weights do not quite add up, and some models have attention sinks.
    """
    parts = masses / masses.sum(dim=-1, keepdim=True)
    split = (weights[..., None] * parts).double().sum(dim=1)
    return share[:, None] * split / split.sum(dim=-1, keepdim=True)
