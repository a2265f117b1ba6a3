"""A member of a consumer group in a process of its own, for a test that kills it."""

from __future__ import annotations

import sys

from worker.broker.source import RecordSource


def main() -> None:
    """Poll until killed; print the partitions on joining. Bootstrap address, topic and group are the arguments."""
    bootstrap, topic, group = sys.argv[1:]
    source = RecordSource(bootstrap, topic, group, session_timeout_ms=2_000)
    while not source.assignment():
        source.poll(0.2)
    print(*source.assignment(), flush=True)
    while True:
        source.poll(0.2)


if __name__ == "__main__":
    main()
