"""A server process that never outlives us, however we end."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

# The shell waits for a line. If we die the pipe closes without one, and the server is killed.
_GUARD = 'read -r _ || kill -9 "$0"'


class GuardedProcess:
    """A server in a session of its own (no Ctrl-C reaches it), watched by a shell that kills it when we are gone."""

    def __init__(self, command: Sequence[str | Path], log_path: Path | None = None) -> None:
        """Start it. What it prints is appended to ``log_path``, or dropped. Raises OSError if it cannot be run."""
        with Path(log_path or os.devnull).open("ab") as log:
            self._server = subprocess.Popen(  # noqa: S603 - our own arguments
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._guard = subprocess.Popen(  # noqa: S603 - our own arguments
            ["/bin/sh", "-c", _GUARD, str(self._server.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The server's process number."""
        return self._server.pid

    def exit_status(self, wait_s: float = 0) -> int | None:
        """The exit status as soon as there is one; None if it still runs after ``wait_s``."""
        try:
            return self._server.wait(wait_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, wait_s: float) -> bool:
        """Ask it to end; kill it if it has not after ``wait_s``. Gives whether it ended by itself."""
        self._server.terminate()
        ended = self.exit_status(wait_s) is not None
        self.kill()
        return ended

    def kill(self) -> None:
        """End it at once, and the guard with it. May be called again."""
        self._server.kill()
        self._server.wait()
        # A line lets the guard go; a guard that is gone already breaks the pipe.
        try:
            self._guard.communicate(b"\n")
        except (BrokenPipeError, ValueError):
            self._guard.wait()


def free_port() -> int:
    """A TCP port on the loopback interface that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
