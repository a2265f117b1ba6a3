"""Text of others on a terminal, where it may do nothing but be read."""

from __future__ import annotations


def visible(text: str, keep: str = "") -> str:
    """``text`` with everything that is not printed, or that turns the direction of what is, as an escape.

    So no colour, no moved cursor and no second line comes out of it, unless ``keep`` names its character.
    """
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )
