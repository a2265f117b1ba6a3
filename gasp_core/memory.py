"""What running out of memory looks like, on each device."""

from __future__ import annotations

import torch

# Torch has an error of its own for accelerators only; the CPU's allocator raises a RuntimeError with these words.
_CPU_WORDS = "can't allocate memory"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that there was not enough memory, as against any other fault."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and _CPU_WORDS in str(error)


def release_unused() -> None:
    """Give back what torch holds in reserve, so that a smaller piece of work finds it whole."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
