"""Asking an endpoint in a thread of its own, so that the model never waits for an answer."""

from __future__ import annotations

from worker.runtime.retry import RetryPolicy, pause_s
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.second_opinion.chat import Chat
from worker.second_opinion.opinion_work import OpinionWork

PART = "second_opinion"
IDLE_LOOK_S = 1.0


class OpinionThread:
    """Asks until a stop is asked for, then closes ``chat``; pauses longer and longer while it fails."""

    def __init__(self, asking: OpinionWork, chat: Chat, stop: Stop, telemetry: Telemetry, *, within_s: float) -> None:
        self._asking = asking
        self._chat = chat
        self._stop = stop
        self._telemetry = telemetry
        self._retry = RetryPolicy(stop, telemetry, part=PART, within_s=within_s)

    def run(self) -> None:
        """Run in a thread. Raises faults that do not pass."""
        try:
            while not self._stop.is_set():
                self._retry.beat()
                self._step()
        finally:
            self._telemetry.liveness.excuse(PART)
            self._chat.close()

    def _step(self) -> None:
        found = self._asking.run()
        if self._asking.failures:
            self._stop.wait(pause_s(self._asking.failures))
        elif not found:
            self._stop.wait(IDLE_LOOK_S)
