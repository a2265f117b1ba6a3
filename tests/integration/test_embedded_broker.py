"""The embedded broker's life: it answers when we have it, and is gone when we are."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from worker.broker.admin import ping
from worker.broker.errors import BrokerUnavailable
from worker.embedded.broker import embedded_broker

DEADLINE_S = 20.0

_HOLDER = """
import sys
from worker.embedded.broker import embedded_broker
with embedded_broker() as bootstrap:
    print(bootstrap, flush=True)
    sys.stdin.read()
"""


def test_it_answers_at_once_and_is_gone_afterwards(tmp_path: Path) -> None:
    log_path = tmp_path / "broker.log"
    with embedded_broker(log_path) as bootstrap:
        assert ping(bootstrap).brokers == 1
        assert not _refuses(bootstrap)
    assert _refuses(bootstrap)
    assert log_path.exists()


def test_two_at_a_time_do_not_meet() -> None:
    with embedded_broker() as one, embedded_broker() as other:
        assert one != other


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_it_does_not_outlive_a_process_that_is_killed(end: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        bootstrap = holder.stdout.readline().strip()
        assert not _refuses(bootstrap)
        holder.send_signal(end)
    deadline = time.monotonic() + DEADLINE_S
    while not _refuses(bootstrap):
        assert time.monotonic() < deadline
    with pytest.raises(BrokerUnavailable):
        ping(bootstrap, timeout_s=0.2)


def _refuses(bootstrap: str) -> bool:
    host, port = bootstrap.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except (ConnectionResetError, TimeoutError):
        # It was killed with us at the door.
        return False
    return False
