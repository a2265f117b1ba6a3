"""gasp-rag in a process of its own, asked one case at a time, so that both packages take turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from gasp_core.grounding import Exchange
from gasp_core.packaged import cache_directory

SEPARATOR = "\n\n"


class Peer:
    """Times gasp-rag on an exchange, its passages as the chunks."""

    def __init__(self, to_peer: IO[str], from_peer: IO[str]) -> None:
        self._to = to_peer
        self._from = from_peer

    def time(self, exchange: Exchange, *, leave_one_out: bool) -> dict[str, float]:
        """Seconds and peak memory in MB over what was resident before."""
        texts = [passage.text for passage in exchange.passages]
        return self.ask(
            {
                "context": SEPARATOR.join(texts),
                "chunks": _spans(texts),
                "answer": exchange.answer,
                "query": exchange.question,
                "leave_one_out": leave_one_out,
            }
        )

    def ask(self, question: dict[str, Any]) -> dict[str, float]:
        """One line there, one line back."""
        self._to.write(json.dumps(question) + "\n")
        self._to.flush()
        line = self._from.readline()
        if not line:
            raise SystemExit("gasp-rag ended (make bench-scoring installs it)")
        reply: dict[str, float] = json.loads(line)
        return reply


@contextmanager
def peer_process(model: str, threads: int) -> Iterator[Peer]:
    """Start gasp-rag with a model; it ends with the context."""
    environment = {**os.environ, "PYTHONPATH": str(cache_directory() / "gasp-rag")}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.scoring_peer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a pipe is missing")
        peer = Peer(process.stdin, process.stdout)
        peer.ask({"model": model, "threads": threads})
        yield peer
        process.stdin.close()


def _spans(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Each passage with the separator after it."""
    spans, start = [], 0
    for number, text in enumerate(texts, 1):
        end = start + len(text) + (len(SEPARATOR) if number < len(texts) else 0)
        spans.append((start, end))
        start = end
    return spans
