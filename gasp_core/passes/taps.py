"""What is read inside the network on the way: the states after a layer, or a few numbers made of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gasp_core.errors import ModelUnsupported


@dataclass(frozen=True, slots=True, eq=False)
class Tap:
    """Reads the states after the layer ``layer``, counted from 1.

    ``weights`` (D, M) and ``offsets`` (M,) make M numbers of a state of width D; without them the state is taken as it
    is. Both are float32. ``slopes`` (M,) in float32 is what one unit of each number adds to a token's score, None if no
    score is linear in them; it is for who takes the numbers, on a CPU.
    """

    layer: int
    weights: Tensor | None = None
    offsets: Tensor | None = None
    slopes: Tensor | None = None

    def to(self, device: torch.device) -> Tap:
        """The same on a device."""
        weights, offsets = (None if one is None else one.to(device) for one in (self.weights, self.offsets))
        return Tap(self.layer, weights, offsets, self.slopes)

    def read(self, states: Tensor) -> Tensor:
        """What is read of states (…, D): (…, M) in float32."""
        wide = states.float()
        if self.weights is None:
            return wide
        read = wide @ self.weights
        return read if self.offsets is None else read + self.offsets


def joint_slopes(taps: Sequence[Tap]) -> Tensor | None:
    """What one unit of each number of all these taps adds to a score, (all M,); None if no score is made of them."""
    slopes = [tap.slopes for tap in taps if tap.slopes is not None]
    return torch.cat(slopes) if slopes and len(slopes) == len(taps) else None


class Taps:
    """Several taps of one network. Raises ModelUnsupported if it has no such layers."""

    def __init__(self, network: Any, taps: Sequence[Tap], *, name: str = "") -> None:  # noqa: ANN401 - transformers' own
        self._taps = tuple(taps)
        self._layers = decoder_layers(network, name) if taps else []
        if any(not 1 <= tap.layer <= len(self._layers) for tap in taps):
            raise ModelUnsupported(name, f"it has {len(self._layers)} layers, and another one is to be read")

    @contextmanager
    def beside(self, pick: Callable[[Tensor], Tensor]) -> Iterator[Callable[[Tensor], Tensor]]:
        """Read during a forward of the network within; ``pick`` takes from (B, S, D) what is wanted, (…, D).

        Yields what puts the readings beside the final states, (…, D) to (…, D + all M), once the forward is done.
        """
        read: dict[int, Tensor] = {}
        with ExitStack() as stack:
            for number, tap in enumerate(self._taps):
                hook = self._layers[tap.layer - 1].register_forward_hook(_reader(tap, pick, read, number))
                stack.callback(hook.remove)
            yield lambda final: torch.cat([final, *(read[number] for number in range(len(self._taps)))], dim=-1)


def decoder_layers(network: Any, name: str = "") -> Sequence[nn.Module]:  # noqa: ANN401 - as above
    """The layers of a network in order. Raises ModelUnsupported if they are not in one list of as many as it states."""
    stated = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    found = [one for one in network.base_model.modules() if isinstance(one, nn.ModuleList) and len(one) == stated]
    if not found:
        raise ModelUnsupported(name, "its layers are not in a list that is known, so that none can be read")
    return list(found[0])


def _reader(
    tap: Tap, pick: Callable[[Tensor], Tensor], read: dict[int, Tensor], number: int
) -> Callable[[nn.Module, Any, Any], None]:
    def hook(_layer: nn.Module, _inputs: object, output: Any) -> None:  # noqa: ANN401 - a tensor, or a tuple with it
        read[number] = tap.read(pick(output[0] if isinstance(output, tuple) else output))

    return hook
