"""The one way to a terminal: text of others may do nothing there but be read."""

from __future__ import annotations

import typer


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Write lines to standard output, or standard error.

    What is not printed, other than an end of a line and a tab, is written as JSON writes it, so that JSON stays what it
    says. A name or text of others goes through ``visible`` first where it must not begin a line of its own.
    """
    shown = "".join(char if char in "\n\t" or char.isprintable() else _escaped(char) for char in text)
    typer.echo(shown, err=err, nl=nl)


def visible(text: str, keep: str = "") -> str:
    """``text`` with everything that is not printed, or that turns the direction of what is, as an escape.

    So no colour, no moved cursor and no second line comes out of it, unless ``keep`` names its character.
    """
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )


def _escaped(char: str) -> str:
    """The character's UTF-16 units as escapes of JSON."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
