"""A session with the server in which no wait is without an end.

PostgreSQL's own timeouts end a statement only while PostgreSQL runs. A server that is frozen, or a proxy that keeps
the connection and passes nothing on, answers nothing and closes nothing, and the driver would wait for ever. So a wait
that has lasted some seconds asks on a second connection whether the server lives, and one that does not is given up:
as an OperationalError, with the connection closed, like that of any server that has gone away.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

Result = TypeVar("Result")

CONNECT_TIMEOUT_S = 10
SILENCE_S = 10.0
_PROBE_S = 5
# Above the server's own bound of a statement, which ends it in order and says why.
LONGEST_WAIT_S = 90.0
# After the time for a stop is up. A server that lives answers most of what is left to do within it.
_PARTING_S = 1.0
_INTERVAL_S = 0.1


def endless() -> float:
    """The time that is left to anything as long as no stop was asked for, in seconds."""
    return math.inf


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a session waits. ``left_s`` says for how long from now on anything may still take; endless by default.

    After ``silence_s`` seconds without an answer the session asks ``is_alive``, and again after each so many.
    """

    is_alive: Callable[[], bool]
    left_s: Callable[[], float] = endless
    silence_s: float = SILENCE_S
    longest_s: float = LONGEST_WAIT_S


class ServerSilent(psycopg.OperationalError):
    """A wait was given up. The connection is closed."""


class Session(psycopg.Connection[Any]):
    """A connection of psycopg whose every wait, the one for a COMMIT among them, ends within its ``patience``."""

    patience: Patience | None = None

    def wait(self, gen: PQGen[Result], interval: float = _INTERVAL_S, timeout: float | None = None) -> Result:
        """Wait for what ``gen`` does with the connection, as psycopg does, but not for ever."""
        watched = gen if self.patience is None else self._watched(gen, self.patience)
        return super().wait(watched, interval, timeout)

    def _watched(self, gen: PQGen[Result], patience: Patience) -> PQGen[Result]:
        """The same work, with a look at the clock whenever it is resumed without news."""
        began = asked = time.monotonic()
        try:
            awaited = next(gen)
            while True:
                ready = yield awaited
                now = time.monotonic()
                if not ready:
                    if now - began > patience.longest_s:
                        self._give_up(f"no answer within {patience.longest_s:g} s")
                    if patience.left_s() <= 0:
                        if now - began > _PARTING_S:
                            self._give_up("no answer within the time that a stop leaves")
                    elif now - asked > patience.silence_s:
                        if not patience.is_alive():
                            self._give_up(f"no answer within {now - began:.0f} s, nor on another connection")
                        asked = time.monotonic()
                awaited = gen.send(ready)
        except StopIteration as done:
            result: Result = done.value
            return result

    def _give_up(self, problem: str) -> None:
        # Else the ROLLBACK, and the closing of the connection, would wait in turn.
        self.pgconn.finish()
        raise ServerSilent(f"the server does not answer: {problem}")


def open_session(parameters: Mapping[str, Any], left_s: Callable[[], float]) -> Session:
    """Connect with psycopg's ``parameters``; ``left_s`` as in Patience. Raises psycopg.Error."""
    least = 2  # as libpq has it
    within = {"connect_timeout": max(least, min(CONNECT_TIMEOUT_S, math.ceil(min(left_s(), CONNECT_TIMEOUT_S))))}
    # Prepared statements stay behind on a server connection that a pooler gives to somebody else.
    session: Session = Session.connect(**{**within, **parameters}, prepare_threshold=None)
    session.patience = Patience(lambda: _is_alive(parameters), left_s)
    return session


def _is_alive(parameters: Mapping[str, Any]) -> bool:
    """Whether the server answers at all, be it with a refusal."""
    probe: Session | None = None
    try:
        probe = Session.connect(**{**parameters, "connect_timeout": _PROBE_S}, prepare_threshold=None)
        probe.patience = Patience(lambda: True, longest_s=_PROBE_S)
        probe.execute("SELECT 1")
    except psycopg.errors.ConnectionTimeout:
        return False
    except psycopg.Error:
        return probe is None or not probe.closed
    finally:
        if probe is not None:
            probe.close()
    return True
