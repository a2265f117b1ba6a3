"""How many messages make a batch, after one that killed its worker."""

from __future__ import annotations

# So many batches that go well double the limit again.
TRUST_BATCHES = 16


class BatchLimit:
    """``messages`` at first, a half of it for each attempt from which the process did not come back, at least one."""

    def __init__(self, messages: int) -> None:
        self._most = messages
        self._went_well = 0
        self.messages = messages

    def after(self, attempts: int) -> None:
        """So many attempts on a partition's next batch have not come to an end."""
        limit = max(1, self._most >> min(attempts, self._most.bit_length()))
        if limit < self.messages:
            self.messages, self._went_well = limit, 0

    def went_well(self) -> None:
        """A batch was settled."""
        self._went_well += 1
        if self.messages < self._most and self._went_well >= TRUST_BATCHES:
            self.messages, self._went_well = min(self._most, 2 * self.messages), 0
