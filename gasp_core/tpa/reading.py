"""One teacher-forced pass that is read layer by layer: a token's probability at each point of the residual stream.

Nothing is kept of a layer once the next begins, and nothing of a block of positions but its sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gasp_core.errors import ModelUnsupported
from gasp_core.model import LanguageModel, attending_by
from gasp_core.tpa.architecture import DecoderLayer, decoder_layers
from gasp_core.tpa.shares import PromptLayout, group_masses, head_weights, split_share
from gasp_core.tpa.sources import POSITION_GROUPS, Source

# Answer positions that are read at once: their attention (heads, positions, keys) and logits (positions, V) are what
# the pass holds at most.
BLOCK_TOKENS = 128

# How far a layer may be from the sum of its parts, in units of rounding of its largest number.
SUM_TOLERANCE_ROUNDINGS = 16


@torch.inference_mode()
def token_sources(
    model: LanguageModel,
    prompt: Sequence[int],
    answer_ids: Sequence[int],
    layout: PromptLayout,
    *,
    block_tokens: int = BLOCK_TOKENS,
) -> Tensor:
    """Give the sources (A, 7) of the answer's tokens in float64, in the order of Source; a row sums to P(token).

    ``prompt`` is not empty. Raises ModelUnsupported if the model's layers are not read here.
    """
    layers = decoder_layers(model)
    # The last answer token predicts nothing that is asked for, so it is not run.
    rows = torch.tensor([prompt[-1], *answer_ids[:-1]], device=model.device)
    targets = torch.tensor(answer_ids, device=model.device)
    cache = _read_on(model, torch.tensor(prompt[:-1], device=model.device), {})[1] if len(prompt) > 1 else {}
    read = []
    # Only this way of attending gives its weights. The prompt was read without: nobody asks for its rows.
    with attending_by(model.network, "eager"):
        for start, end in pairwise([*range(0, len(rows), block_tokens), len(rows)]):
            block = _Block(model, layout, len(prompt) - 2 + end, targets[start:end])
            with block.watching(layers):
                states, cache = _read_on(model, rows[start:end], cache)
            read.append(block.finish(states))
    return torch.cat(read).cpu()


def _read_on(model: LanguageModel, ids: Tensor, cache: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
    """Run tokens after those in ``cache``; gives their final states (N, D) and the cache with them in it."""
    output = model.network.base_model(input_ids=ids[None], use_cache=True, **cache)
    # The argument has changed its name; the output has it under the one that is in use.
    name = "cache" if "cache" in output else "past_key_values"
    return output.last_hidden_state[0], {name: output[name]}


class _Block:
    """Collects the sources of successive positions while they run through the layers.

    ``targets`` (N,) are the tokens that they predict; ``last_position`` is where the last one is in the sequence.
    """

    def __init__(self, model: LanguageModel, layout: PromptLayout, last_position: int, targets: Tensor) -> None:
        self._model = model
        self._layout = layout
        self._last_position = last_position
        self._targets = targets
        self._unembedding = model.network.get_output_embeddings().weight[targets]  # (N, D)
        self._sources = torch.zeros(len(targets), len(Source), dtype=torch.float64, device=targets.device)
        self._probability: Tensor | None = None
        self._residual = self._mixed = self._fed = targets  # replaced before they are read

    @contextmanager
    def watching(self, layers: Sequence[DecoderLayer]) -> Iterator[None]:
        """Listen to the layers for as long as this lasts."""
        hooks = [hook for layer in layers for hook in self._hooks(layer)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def finish(self, states: Tensor) -> Tensor:
        """The sources (N, 7), given the final states (N, D) behind the last norm."""
        self._sources[:, Source.FINAL_NORM] = self._advance(states)
        return self._sources

    def _hooks(self, layer: DecoderLayer) -> list[Any]:
        def attended(_module: object, _inputs: object, output: tuple[Any, ...]) -> tuple[Any, ...]:
            self._attended(layer, output[0][0], output[1])
            # The layer would hold the weights until its end.
            return (output[0], None, *output[2:])

        return [
            layer.whole.register_forward_pre_hook(_first_input(self._entered), with_kwargs=True),
            layer.projection.register_forward_pre_hook(_first_input(self._about_to_project), with_kwargs=True),
            layer.attention.register_forward_hook(attended),
            layer.feed_forward.register_forward_hook(lambda _module, _inputs, output: self._did_feed(_first(output))),
            layer.whole.register_forward_hook(lambda _module, _inputs, output: self._left(_first(output))),
        ]

    def _entered(self, residual: Tensor) -> None:
        self._residual = residual[0]
        if self._probability is None:
            self._sources[:, Source.EMBEDDING] = self._probability = self._probe(self._residual)

    def _about_to_project(self, mixed: Tensor) -> None:
        self._mixed = mixed[0]

    def _attended(self, layer: DecoderLayer, added: Tensor, attention: Tensor | None) -> None:
        if attention is None:
            raise ModelUnsupported(self._model.name, "its attention gives no weights")
        self._residual = added + self._residual
        share = self._advance(self._residual)
        mixed = self._mixed.reshape(len(share), attention.shape[1], -1)
        weights = head_weights(mixed, layer.projection_weight, self._unembedding)
        masses = group_masses(attention[0], self._last_position, self._layout)
        self._sources[:, : len(POSITION_GROUPS)] += split_share(share, weights, masses)

    def _did_feed(self, fed: Tensor) -> None:
        self._fed = fed[0]

    def _left(self, residual: Tensor) -> None:
        after = residual[0]
        error = (after - (self._residual + self._fed)).abs().max()
        # What the pieces sum to does not depend on where the middle of a layer is, so that has to be checked.
        if error > SUM_TOLERANCE_ROUNDINGS * torch.finfo(after.dtype).eps * after.abs().max():
            raise ModelUnsupported(self._model.name, "its layers do not just add attention and feed-forward")
        self._sources[:, Source.FEED_FORWARD] += self._advance(after)

    def _advance(self, states: Tensor) -> Tensor:
        """How much (N,) the probability of the targets has grown since the last point of the stream."""
        before, self._probability = self._probability, self._probe(states)
        return self._probability if before is None else self._probability - before

    def _probe(self, states: Tensor) -> Tensor:
        """The probability (N,) of the targets, if states (N, D) went into the unembedding now."""
        logits = self._model.logits(states).float()
        chosen = logits.gather(-1, self._targets[:, None])[:, 0]
        return (chosen - logits.logsumexp(dim=-1)).double().exp()


def _first(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _first_input(take: Callable[[Tensor], None]) -> Callable[..., None]:
    """A hook that takes a module's hidden states, however they are passed."""
    return lambda _module, inputs, named: take(inputs[0] if inputs else named["hidden_states"])
