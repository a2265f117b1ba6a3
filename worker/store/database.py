"""One database: its pool of connections, and the two ways to run statements on it.

A **read** is one transaction that PostgreSQL itself lets only read; a fault of it is the caller's to wait out. A
**write** is a unit of work: a function of a connection that becomes one transaction, and that may be run again from
its beginning. It is run again, up to five times in all, after an error by which PostgreSQL has surely rolled it back
and which another run may not meet: a deadlock, a failed serialization, a key that another transaction filled or a row
that it deleted at the same moment (StoreConflict), a week without its partition, which is made in between
(PartitionMissing). So a unit changes nothing but the database, and what names its work (owners, times, ids) comes from
outside. An error that leaves open whether a COMMIT took place, above all a lost connection, is never answered by
another run here: only the caller knows how to find out. There is no third way, so no repository can write by another
rule.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine

from worker.store.engine import READ_ONLY, close_connections, discard_connections, transaction_settings
from worker.store.errors import PartitionMissing, StoreConflict, StoreUnavailable
from worker.store.faults import translated
from worker.store.partitioning import AHEAD_DAYS, ensure_partitions

Result = TypeVar("Result")

ATTEMPTS = 5
_LONGEST_PAUSE_S = 0.05

# PostgreSQL's code for a write on a server, or in a session, that only reads.
_ONLY_READS = "25006"


class Database:
    """A pool of connections, safe to use from several threads. Nothing of the driver's errors leaves it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._settings = transaction_settings(engine.url)
        self._reading = engine.execution_options(**{READ_ONLY: True})
        self._reading_one_moment = self._reading.execution_options(isolation_level="REPEATABLE READ")

    def close(self) -> None:
        """Close the idle connections. Those in use, and later ones, close when their transaction ends."""
        close_connections(self._engine)

    @contextmanager
    def read(self, *, one_moment: bool = False) -> Iterator[Connection]:
        """One transaction that only reads, if wanted the state of ``one_moment`` throughout. Raises StoreError."""
        reading = self._reading_one_moment if one_moment else self._reading
        with translated(self._engine.url), reading.begin() as connection:
            connection.execute(self._settings)
            yield connection

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run a unit of work in a transaction of its own, as often as the rule above says, and return its result.

        Raises StoreError; then nothing of it was written, as far as the server could tell.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return self._once(work)
            except StoreConflict:
                time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 - spreads the attempts, guards nothing
            except PartitionMissing:
                self._once(lambda connection: ensure_partitions(connection, AHEAD_DAYS))
        return self._once(work)

    def _once(self, work: Callable[[Connection], Result]) -> Result:
        try:
            with translated(self._engine.url), self._engine.begin() as connection:
                connection.execute(self._settings)
                return work(connection)
        except StoreUnavailable as error:
            if error.sqlstate == _ONLY_READS:
                # After a failover the server that writes is another one, and these connections would never find it.
                discard_connections(self._engine)
            raise
