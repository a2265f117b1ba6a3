"""What running out of memory looks like, on each device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from gasp_core.errors import ModelOutOfMemory

T = TypeVar("T")

# Torch has an error of its own for accelerators only; the CPU's allocator raises a RuntimeError with these words.
_CPU_WORDS = "can't allocate memory"


def in_memory(work: Callable[[], T], *, model: str, what: str, forget: Callable[[], None] = lambda: None) -> T:
    """What ``work`` gives. Raises ModelOutOfMemory, which says ``what`` was too much, if there is no memory for it.

    Nothing is held of a failed attempt by then: ``forget`` lets go of what the model keeps between calls.
    """
    try:
        return work()
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
    # Only now has the error let go of the attempt's tensors.
    forget()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    raise ModelOutOfMemory(model, what)


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _CPU_WORDS in str(error)
