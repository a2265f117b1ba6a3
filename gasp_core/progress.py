"""Signs of life from within a forward pass, which may take minutes on a slow machine."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from gasp_core.model import LanguageModel


def tell_progress(model: LanguageModel, tell: Callable[[], None]) -> None:
    """Call ``tell`` after each block of the network, in every forward pass from now on."""

    def done(*_: object) -> None:
        tell()

    for module in model.network.modules():
        if isinstance(module, nn.ModuleList):
            for block in module:
                block.register_forward_hook(done)
