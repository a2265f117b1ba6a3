"""The views and functions: their current text, the text that each revision gave them, and how a revision does that.

``migrations/sql`` has the current text, a file for each view and function. A revision that changes some keeps what it
applied in ``versions/sql/<revision>``, under the same names, because its effect must stay the same when the current
text moves on. CONTRIBUTING.md says how one is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path

from sqlalchemy import Connection

CURRENT = Path(__file__).with_name("sql")
APPLIED = Path(__file__).with_name("versions") / "sql"

_COMMENT = re.compile(r"--[^\n]*")


def current_definitions() -> dict[str, str]:
    """The text of every view and function as it is meant to be now, by name."""
    return _read(CURRENT)


def applied_definitions(revision: str) -> dict[str, str]:
    """The text of the views and functions that a revision changed, as it left them, by name."""
    return _read(APPLIED / revision)


def definitions_before(revision: str) -> dict[str, str]:
    """The text that a revision's views and functions had before it; those that it was the first to make are absent.

    The newest copy that an earlier revision keeps. Revisions before 0008 keep their text in themselves: the folder 0007
    has what later ones changed of it.
    """
    found: dict[str, str] = {}
    for folder in sorted(path for path in APPLIED.iterdir() if path.name < revision):
        found.update(_read(folder))
    return {name: text for name, text in found.items() if name in applied_definitions(revision)}


def apply_definitions(connection: Connection, definitions: Mapping[str, str]) -> None:
    """Create or replace views and functions, each after those that it uses.

    On a connection that commits every statement this waits for one lock at a time. A function that says ``SET
    search_path FROM CURRENT`` is bound to the schema that is migrated.
    """
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for name in in_order(definitions):
        _execute(connection, f"SET LOCAL search_path = {schema}, pg_temp;\n{definitions[name]}")


def take_back_definitions(connection: Connection, revision: str) -> None:
    """Give the views and functions of a revision the text that they had before it, and drop those that it made.

    A view that lost a column can only be dropped and made anew; a revision that added one sees to that first.
    """
    before, applied = definitions_before(revision), applied_definitions(revision)
    apply_definitions(connection, before)
    for name in reversed(in_order(applied)):
        if name not in before:
            kind = "VIEW" if re.search(r"^CREATE OR REPLACE VIEW", applied[name], re.MULTILINE) else "FUNCTION"
            _execute(connection, f"DROP {kind} {name}")


def in_order(definitions: Mapping[str, str]) -> list[str]:
    """The names, each after those that its text mentions outside of comments."""
    return list(TopologicalSorter({name: _mentioned(name, definitions) for name in sorted(definitions)}).static_order())


def _mentioned(name: str, definitions: Mapping[str, str]) -> Iterable[str]:
    words = set(re.findall(r"\w+", _COMMENT.sub("", definitions[name])))
    return sorted(words & definitions.keys() - {name})


def _read(folder: Path) -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.rglob("*.sql"))}


def _execute(connection: Connection, script: str) -> None:
    # Without parameters the driver takes several statements at once, and leaves colons and per cent signs alone.
    connection.exec_driver_sql(script, execution_options={"no_parameters": True})
