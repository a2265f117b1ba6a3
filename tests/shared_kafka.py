"""One Apache Kafka node for all processes of a test run: each of its own would use a core's share while it waits.

Whoever uses it holds a shared lock for as long. The node is kept by a process of its own (``python -m
tests.shared_kafka FOLDER``), which gets the lock for itself when the last user has ended, however it ended.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apache_kafka import KafkaCannotRun, KafkaFailedError, apache_kafka

_ADDRESS, _USERS, _STARTING = "address.json", "users.lock", "starting.lock"
ROOT = Path(__file__).parents[1]


@contextmanager
def shared_apache_kafka(folder: Path) -> Iterator[str]:
    """The bootstrap address of the run's node; ``folder`` is one that all processes of the run name.

    Raises KafkaCannotRun, KafkaFailedError.
    """
    with (folder / _USERS).open("a") as users:
        with _locked(folder / _STARTING):
            fcntl.flock(users, fcntl.LOCK_SH)
            if not (folder / _ADDRESS).exists():
                _start_keeper(folder)
        told = json.loads((folder / _ADDRESS).read_text(encoding="utf-8"))
        if "cannot" in told:
            raise KafkaCannotRun(told["cannot"])
        yield told["bootstrap"]


def _start_keeper(folder: Path) -> None:
    """Start the process that keeps the node, and wait for its word."""
    with (folder / "keeper.log").open("ab") as log:
        # Through a shell that ends at once: whoever starts it may end before the others, and waits for no child.
        shell = subprocess.Popen(
            ["/bin/sh", "-c", '"$0" "$@" &', sys.executable, "-m", "tests.shared_kafka", folder],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    with shell:
        # A line when the address is there; an end without one if it never will be.
        if shell.stdout is None or not shell.stdout.readline():
            raise KafkaFailedError(f"the node cannot be kept: {(folder / 'keeper.log').read_text(errors='replace')}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(folder: Path) -> None:
    """Run a node until nobody uses it."""
    try:
        with apache_kafka() as node:
            _tell(folder, {"bootstrap": node.bootstrap})
            with (folder / _USERS).open("a") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
                # Whoever comes now waits until this process has ended, and starts another.
                (folder / _ADDRESS).unlink()
                node.kill()
    except KafkaCannotRun as error:
        _tell(folder, {"cannot": str(error)})


def _tell(folder: Path, told: dict[str, str]) -> None:
    unfinished = folder / f"{_ADDRESS}.unfinished"
    unfinished.write_text(json.dumps(told), encoding="utf-8")
    unfinished.replace(folder / _ADDRESS)
    print("ready", flush=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
