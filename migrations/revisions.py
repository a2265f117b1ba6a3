"""Which revisions there are, and who can work with what they leave.

A worker that knows the revisions up to its own newest must run on a database that a newer release has migrated, because
the database is migrated first and the workers follow one by one. Therefore a release only **expands** the schema: what
the release before uses stays as it was. What only that one used is removed by a **contract** revision one release
later. Each revision after 0007 says which of the two it is, as ``kind``, and a contract revision names with
``completes`` the expand revision whose other half it is. docs/releasing.md has the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from migrations.errors import MigrationError

LAST_UNDECLARED = "0007"
"""The newest revision from before revisions said what they are. Numbers of four digits compare as text."""


class Kind(StrEnum):
    """What a revision does to the release before: nothing, or remove what that no longer uses."""

    EXPAND = "expand"
    CONTRACT = "contract"


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision by its number. ``completes`` is set for a contract revision; ``kind`` is None up to 0007."""

    number: str
    kind: Kind | None = None
    completes: str | None = None


def config() -> Config:
    """Alembic's configuration; there is no file of it."""
    made = Config()
    # Config reads % as the start of an interpolation.
    made.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return made


def described(script: Script) -> Revision:
    """What a revision says of itself. Raises MigrationError if it says nothing, or what makes no sense."""
    number, module = script.revision, script.module
    if number <= LAST_UNDECLARED:
        return Revision(number)
    completes = getattr(module, "completes", None)
    try:
        kind = Kind(getattr(module, "kind", ""))
    except ValueError:
        raise MigrationError(f"revision {number} must say kind = 'expand' or 'contract'") from None
    if (kind is Kind.CONTRACT) != (completes is not None):
        raise MigrationError(f"revision {number}: a contract revision, and no other, names what it completes")
    return Revision(number, kind, completes)


@cache
def revisions() -> tuple[Revision, ...]:
    """Every revision that this version knows, the oldest first. Raises MigrationError as ``described`` does."""
    return tuple(described(script) for script in reversed(list(ScriptDirectory.from_config(config()).walk_revisions())))


def head_revision() -> str:
    """The newest revision that this version knows."""
    return revisions()[-1].number


def needed_revision() -> str:
    """The oldest revision that this version's workers can run on: the newest that added something to the schema."""
    return next(one.number for one in reversed(revisions()) if one.kind is not Kind.CONTRACT)
