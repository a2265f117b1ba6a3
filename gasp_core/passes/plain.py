"""Plain passes: every prompt is read from its beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gasp_core.model import LanguageModel
from gasp_core.passes.taps import Tap, Taps
from gasp_core.plan import Plan


@dataclass(frozen=True, slots=True)
class _Sequence:
    """One prompt of one plan, with the answer after it."""

    plan: int
    variant: int
    prompt: list[int]
    answer: list[int]

    @property
    def length(self) -> int:
        # The last answer token predicts nothing that is asked for, so it is not run.
        return len(self.prompt) + len(self.answer) - 1


class PlainPasses:
    """Runs every prompt as a whole, right-padded in batches. The reference, and for models that share no prefixes.

    A forward holds at most ``max_tokens`` tokens with padding, or a single sequence if that alone is longer.
    """

    can_hide = False

    def __init__(self, model: LanguageModel, max_tokens: int, taps: Sequence[Tap] = ()) -> None:
        self._model = model
        self._taps = Taps(model.network, [tap.to(model.device) for tap in taps], name=model.name)
        self._max_tokens = max_tokens

    def reading(self, taps: Sequence[Tap]) -> PlainPasses:
        """The same passes with these taps."""
        return PlainPasses(self._model, self._max_tokens, taps)

    def forget(self) -> None:
        """Nothing is kept."""

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        """Give per plan the hidden states (variants, A, D + M) that predict its answer under each of its prompts."""
        states: list[list[Tensor | None]] = [[None] * len(plan.prompts) for plan in plans]
        sequences = [
            _Sequence(number, variant, prompt, plan.answer_ids)
            for number, plan in enumerate(plans)
            for variant, prompt in enumerate(plan.prompts)
        ]
        for batch in _batches(sequences, self._max_tokens):
            with self._taps.beside(lambda states: states) as beside:
                hidden = beside(self._model.hidden(_padded(batch, self._model.device)))  # (B, S, D + M)
            for row, sequence in enumerate(batch):
                # The state at position t predicts token t + 1, so the answer's states start one before it:
                #   prompt: p0 p1 p2 | a0 a1 a2        states used: p2 a0 a1
                first = len(sequence.prompt) - 1
                states[sequence.plan][sequence.variant] = hidden[row, first : first + len(sequence.answer)].clone()
        return [torch.stack([state for state in variants if state is not None]) for variants in states]


def _batches(sequences: Sequence[_Sequence], max_tokens: int) -> Iterator[list[_Sequence]]:
    """Group sequences of similar length, so that little is padded."""
    batch: list[_Sequence] = []
    for sequence in sorted(sequences, key=lambda sequence: sequence.length):
        # Sorted upwards, so the newest sequence is the longest and sets the width.
        if batch and sequence.length * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(sequence)
    if batch:
        yield batch


def _padded(batch: Sequence[_Sequence], device: torch.device) -> Tensor:
    width = max(sequence.length for sequence in batch)
    ids = torch.zeros(len(batch), width, dtype=torch.long)
    for row, sequence in enumerate(batch):
        ids[row, : sequence.length] = torch.tensor((sequence.prompt + sequence.answer)[:-1])
    return ids.to(device)
