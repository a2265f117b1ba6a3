"""A worker process of a soak: the service as it is, with a scorer that needs no model, and a fate.

It takes the settings of ``gasp-worker run`` and, from the soak, SOAK_DELAY_S, SOAK_FATE_FILE, SOAK_BREAK and
SOAK_CLOCK_AHEAD_S. The soak forks its workers from a server that has imported this module, because importing torch
costs a core ten seconds; ``python -m tests.soak.worker`` runs one without that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path

from tests.soak.clock import set_clock_ahead
from tests.soak.fate import Fate, wrap_parts
from tests.soak.sabotage import Sabotage, sabotage
from tests.soak.scorer import SoakScorer
from worker.cli import stop_on_signals
from worker.errors import Stopped
from worker.runtime.logs import configure_logs
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.settings import read_settings


def main() -> None:
    """Run until told to stop."""
    settings = read_settings()
    configure_logs(settings.log_level)
    delay_s = float(os.environ["SOAK_DELAY_S"])
    wrap_parts(Fate(Path(os.environ["SOAK_FATE_FILE"])))
    sabotage(Sabotage(os.environ["SOAK_BREAK"]))
    ahead_s = float(os.environ["SOAK_CLOCK_AHEAD_S"])
    if ahead_s:
        set_clock_ahead(ahead_s)
    stop = stop_on_signals()
    try:
        finished = run_service(settings, set(Role), stop, load=lambda _: SoakScorer(delay_s))
    except Stopped:
        raise SystemExit(0) from None
    if not finished:
        # As in worker.cli: the interpreter would wait for the thread that still scores.
        os._exit(0)


def work(environment: Mapping[str, str], log: Path) -> None:
    """The life of a forked worker: as ``main`` with this environment, its output appended to ``log``."""
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


if __name__ == "__main__":
    main()
