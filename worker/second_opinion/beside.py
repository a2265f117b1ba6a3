"""Asking an endpoint in a thread of its own, so that nothing of the model's waits for an answer."""

from __future__ import annotations

from worker.runtime.backoff import Patience, pause_s
from worker.runtime.instruments import Instruments
from worker.runtime.stop import Stop
from worker.second_opinion.asking import Asking
from worker.second_opinion.chat import Chat

PART = "second_opinion"
IDLE_LOOK_S = 1.0


class Beside:
    """Asks until a stop is asked for, then closes ``chat``; pauses longer and longer while nothing comes of it."""

    def __init__(self, asking: Asking, chat: Chat, stop: Stop, instruments: Instruments, *, within_s: float) -> None:
        self._asking = asking
        self._chat = chat
        self._stop = stop
        self._instruments = instruments
        self._patience = Patience(stop, instruments, part=PART, within_s=within_s)

    def run(self) -> None:
        """Run in a thread. Raises what cannot be waited out."""
        try:
            while not self._stop.is_set():
                self._patience.beat()
                self._step()
        finally:
            self._instruments.liveness.excuse(PART)
            self._chat.close()

    def _step(self) -> None:
        found = self._asking.run()
        if self._asking.failures:
            self._stop.wait(pause_s(self._asking.failures))
        elif not found:
            self._stop.wait(IDLE_LOOK_S)
