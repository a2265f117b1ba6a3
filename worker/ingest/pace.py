"""How much is scored at a time: on a slow machine little, so that what is done is settled before long."""

from __future__ import annotations

from collections.abc import Sequence

# Longer parts gain nothing, and what is under way is lost if the process ends.
PART_S = 15.0
# How much of what was learned before still counts beside the last part.
_FADE = 0.5


class Pace:
    """Learns what a character of an exchange takes, and cuts batches into parts of ``part_s`` seconds.

    Before anything is known a part has one exchange.
    """

    def __init__(self, part_s: float = PART_S) -> None:
        self._part_s = part_s
        self._seconds = 0.0
        self._characters = 0.0

    def fitting(self, characters: Sequence[int], *, alone: bool = False) -> int:
        """How many of the records make the next part, at least one; 0 characters need no scoring.

        ``alone`` lets a part have one exchange, whatever is known.
        """
        room = self._part_s * self._characters / self._seconds if self._seconds and not alone else 0.0
        used = 0
        for number, size in enumerate(characters):
            if used and size and used + size > room:
                return number
            used += size
        return len(characters)

    def took(self, characters: int, seconds: float) -> None:
        """A part of so many characters was scored in so many seconds."""
        if characters:
            self._seconds = self._seconds * _FADE + seconds
            self._characters = self._characters * _FADE + characters
