"""Where the parts of a decoder layer are, in whatever family of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from gasp_core.errors import ModelUnsupported
from gasp_core.model import LanguageModel

ATTENTION_NAMES = ("self_attn", "attn", "self_attention", "attention")
PROJECTION_NAMES = ("o_proj", "c_proj", "out_proj", "dense")
FEED_FORWARD_NAMES = ("mlp", "feed_forward", "ffn")


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """A layer, its attention with the output projection, and its feed-forward block."""

    whole: nn.Module
    attention: nn.Module
    projection: nn.Module
    feed_forward: nn.Module

    @property
    def projection_weight(self) -> Tensor:
        """The weight (D, heads x size) of the output projection."""
        weight: Tensor = self.projection.get_parameter("weight")
        # GPT-2 has a Conv1D, which is a Linear with its weight the other way round.
        return weight if isinstance(self.projection, nn.Linear) else weight.T


def decoder_layers(model: LanguageModel) -> list[DecoderLayer]:
    """Give the model's decoder layers in order.

    Raises ModelUnsupported if they have no attention or feed-forward block under a name that is known here.
    """
    for module in model.network.base_model.modules():
        if isinstance(module, nn.ModuleList):
            layers = [_layer(child) for child in module]
            if found := [layer for layer in layers if layer is not None]:
                return _all(found, layers, model)
    raise ModelUnsupported(model.name, "it has no decoder layers of attention and feed-forward that are known here")


def _all(found: list[DecoderLayer], layers: Sequence[DecoderLayer | None], model: LanguageModel) -> list[DecoderLayer]:
    if len(found) < len(layers):
        raise ModelUnsupported(model.name, "not all of its layers are attention followed by feed-forward")
    return found


def _layer(whole: nn.Module) -> DecoderLayer | None:
    attention = _child(whole, ATTENTION_NAMES)
    projection = _child(attention, PROJECTION_NAMES)
    feed_forward = _child(whole, FEED_FORWARD_NAMES)
    if attention is None or feed_forward is None or projection is None:
        return None
    is_known = isinstance(projection, nn.Linear) or type(projection).__name__ == "Conv1D"
    return DecoderLayer(whole, attention, projection, feed_forward) if is_known else None


def _child(module: nn.Module | None, names: Sequence[str]) -> nn.Module | None:
    children = dict(module.named_children()) if module is not None else {}
    return next((children[name] for name in names if name in children), None)
