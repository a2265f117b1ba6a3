"""Worker processes forked from a server that has imported the worker (``tests.preloaded``), which costs many seconds.

What runs in them is ``gasp-worker`` or ``gasp`` with its arguments and environment, as if it had been started anew.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.preloaded"])


class Forked:
    """A child process, with those methods of ``subprocess.Popen`` that the tests use."""

    def __init__(
        self, life: Callable[..., None], arguments: Sequence[Any], environment: Mapping[str, str], log: Path
    ) -> None:
        """Run ``life`` with its arguments and this environment.

        What it says on standard error goes to ``log``, and the rest to ``log`` with the ending ``.out``.
        """
        log.touch()
        self._process = _processes.Process(target=_live, args=(life, tuple(arguments), dict(environment), log))
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return int(self._process.pid or 0)

    @property
    def returncode(self) -> int | None:
        """Its exit status, or minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As ``returncode``."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("gasp-worker", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)


def run_command(*arguments: str) -> None:
    """The life of a ``gasp-worker`` process."""
    from worker.cli import main  # here, because only the child needs it

    sys.argv = ["gasp-worker", *arguments]
    main()


def run_gasp(*arguments: str) -> None:
    """The life of a ``gasp`` process."""
    from gasp_core.cli import main  # as above

    sys.argv = ["gasp", *arguments]
    main()


def _live(life: Callable[..., None], arguments: Sequence[Any], environment: Mapping[str, str], log: Path) -> None:
    for path, number in ((log.with_suffix(".out"), 1), (log, 2)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    life(*arguments)
