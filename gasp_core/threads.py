"""How many CPU threads the models compute with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Have models compute with so many threads meanwhile; None leaves it to torch, which takes one for each core.

    The setting is the whole process's.
    """
    if count is None:
        yield
        return
    import torch  # seconds to import, which --help need not wait for

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
