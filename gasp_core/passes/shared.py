"""Shared-prefix passes: what the prompts of an answer have in common goes through the network once.

Under causal attention the states of a prompt's beginning do not depend on what follows. So the full prompt and the one
without context are read once, as trunks whose keys and values are kept; each prompt then is a branch that starts where
it departs from a trunk, with positions that go on from there. The numbers are those of the whole prompt, to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gasp_core.fitting import fitting
from gasp_core.passes.pack import KeyValues, Pack, Segment, Span
from gasp_core.passes.taps import Tap
from gasp_core.passes.trunks import TrunkCache, shared_length
from gasp_core.plan import Plan


@dataclass(frozen=True, slots=True)
class _Trunk:
    """A prompt but for its last token, with its keys and values once they are computed."""

    ids: list[int]
    contents: KeyValues


class Network(Protocol):
    """Runs packs: gives the final states that a pack asks for, with what taps read beside them."""

    def __call__(self, pack: Pack) -> Tensor:
        """Final states (R, D), or (R, D + M)."""
        ...

    def reading(self, taps: Sequence[Tap]) -> Network:
        """The same network with these taps."""
        ...


class SharedPrefixPasses:
    """Runs plans with one network. ``max_tokens`` bounds a forward, but a branch is never cut."""

    can_hide = True

    def __init__(self, network: Network, device: torch.device, *, max_tokens: int, cache: TrunkCache) -> None:
        self._network = network
        self._device = device
        self._max_tokens = max_tokens
        self._cache = cache

    def answer_states(self, plans: Sequence[Plan]) -> list[Tensor]:
        """Give per plan the hidden states (variants, A, D + M) that predict its answer under each of its prompts."""
        states: list[Tensor] = []
        for group in _groups(plans, self._max_tokens):
            states += self._run_group(group)
        return states

    def reading(self, taps: Sequence[Tap]) -> SharedPrefixPasses:
        """The same passes with these taps; what is kept of contexts is shared."""
        network = self._network.reading([tap.to(self._device) for tap in taps])
        return SharedPrefixPasses(network, self._device, max_tokens=self._max_tokens, cache=self._cache)

    def forget(self) -> None:
        """Let go of the contexts that were kept."""
        self._cache.clear()

    def _run_group(self, plans: Sequence[Plan]) -> list[Tensor]:
        trunks = iter(self._read_trunks([prompt[:-1] for plan in plans for prompt in plan.prompts[:2]]))
        branches = [
            _branch(plan, number, own)
            for plan, own in zip(plans, zip(trunks, trunks, strict=True), strict=True)
            for number in range(len(plan.prompts))
        ]
        kept = torch.cat([self._forward(pack) for pack in _packs(branches, self._max_tokens)])
        sizes = [len(plan.prompts) * len(plan.answer_ids) for plan in plans]
        return [
            rows.view(len(plan.prompts), len(plan.answer_ids), -1)
            for plan, rows in zip(plans, torch.split(kept, sizes), strict=True)
        ]

    def _read_trunks(self, wanted: Sequence[list[int]]) -> list[_Trunk]:
        """Trunks of these ids, from the cache or computed, each different one once."""
        trunks: dict[tuple[int, ...], _Trunk] = {}
        missing: list[Segment] = []
        for ids in wanted:
            if tuple(ids) in trunks:
                continue
            known, shared = self._cache.find(ids)
            if known is not None and shared == len(ids):
                trunks[tuple(ids)] = _Trunk(ids, known)
                continue
            contents = KeyValues(len(ids))
            if known is not None:
                contents.front_of(known, shared)
            trunks[tuple(ids)] = _Trunk(ids, contents)
            missing += self._pieces(ids, contents, shared)
        # The pieces of one trunk build on each other, so they must not meet in one pack unless they are alone in it.
        for pack in _packs(missing, self._max_tokens, apart=True):
            self._forward(pack)
        for trunk in trunks.values():
            self._cache.keep(trunk.ids, trunk.contents)
        return [trunks[tuple(ids)] for ids in wanted]

    def _pieces(self, ids: list[int], contents: KeyValues, start: int) -> Iterator[Segment]:
        for at in range(start, len(ids), self._max_tokens):
            sees = ((0, at),) if at else ()
            yield Segment(ids[at : at + self._max_tokens], at, contents, sees, extends=at)

    def _forward(self, segments: Sequence[Segment]) -> Tensor:
        return self._network(Pack(segments, self._device))


def _branch(plan: Plan, number: int, trunks: Sequence[_Trunk]) -> Segment:
    """What a prompt has beyond a trunk, and the answer but for its last token, which predicts nothing asked for.

    At least the last token of the prompt is in the branch, because its state predicts the answer's first token. A
    question that must not see some chunks is in the branch, too.
    """
    prompt, hidden = plan.prompts[number], plan.hidden[number]
    shared, trunk = max(
        ((min(shared_length(prompt, one.ids), len(prompt) - 1), one) for one in trunks), key=lambda found: found[0]
    )
    if hidden:
        shared = min(shared, plan.context_end)
    first = len(prompt) - 1 - shared
    return Segment(
        [*prompt[shared:], *plan.answer_ids[:-1]],
        position=shared,
        trunk=trunk.contents,
        sees=_visible(shared, hidden),
        keep=range(first, first + len(plan.answer_ids)),
    )


def _visible(length: int, hidden: Sequence[Span]) -> tuple[Span, ...]:
    """What is left of the first ``length`` tokens without the hidden spans, which are in order."""
    edges = [0, *(edge for span in hidden for edge in span), length]
    return tuple((start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end)


def _groups(plans: Sequence[Plan], max_tokens: int) -> Iterator[list[Plan]]:
    """Plans in order, as many at a time as have full prompts that fit one forward; at least one."""
    return fitting(plans, lambda plan: len(plan.prompts[0]), max_tokens)


def _packs(segments: Iterable[Segment], max_tokens: int, *, apart: bool = False) -> Iterator[list[Segment]]:
    """Segments in order, as many at a time as fit; at least one. ``apart``: no two of one trunk together."""
    if apart:
        return fitting(segments, _length, max_tokens, _of_one_trunk)
    return fitting(segments, _length, max_tokens)


def _length(segment: Segment) -> int:
    return len(segment.ids)


def _of_one_trunk(pack: Sequence[Segment], segment: Segment) -> bool:
    return any(other.trunk is segment.trunk for other in pack)
