"""What the contract makes of a payload: an interaction with what was repaired, or a rejection with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.interaction import Interaction


@dataclass(frozen=True, slots=True)
class Decoded:
    """A valid interaction, the adapter that read it, and what had to be repaired on the way (short fixed words)."""

    interaction: Interaction
    adapter: str
    repairs: tuple[str, ...] = ()
