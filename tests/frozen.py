"""A PostgreSQL server that answers nothing and closes nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg


@contextmanager
def frozen(url: str) -> Iterator[None]:
    """Stop every process of the server, as a machine that is paused does."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True) as connection:
        folder = str(connection.execute("SHOW data_directory").fetchone()[0])  # type: ignore[index]
    leader = int((Path(folder) / "postmaster.pid").read_text().split()[0])
    stopped = [leader] if _signal(leader, signal.SIGSTOP) else []
    # It starts no further ones now.
    backends = [process.pid for process in psutil.Process(leader).children()]
    stopped += [pid for pid in backends if _signal(pid, signal.SIGSTOP)]
    try:
        yield
    finally:
        for pid in stopped:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
