"""A durable PostgreSQL that the soak may stop, crash and start again, and what it asks of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from migrations.upgrade import upgrade
from tests.frozen import frozen
from worker.embedded.postgres import _server_user, embedded_postgres
from worker.embedded.programs import major_version, program, run_options

# Every change of a partition's row, in order: the trigger runs while the row is locked.
_HISTORY = """
CREATE TABLE soak_steps (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    partition integer NOT NULL,
    owner text NOT NULL,
    generation integer NOT NULL,
    incarnation integer NOT NULL,
    from_offset bigint NOT NULL,
    to_offset bigint NOT NULL
);
CREATE FUNCTION soak_note_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO soak_steps (partition, owner, generation, incarnation, from_offset, to_offset)
    VALUES (NEW.partition, NEW.owner, NEW.generation, NEW.incarnation, OLD.next_offset, NEW.next_offset);
    RETURN NULL;
END
$$;
CREATE TRIGGER soak_steps AFTER UPDATE ON partition_offsets FOR EACH ROW EXECUTE FUNCTION soak_note_step()
"""

_BUSY_REVIEWERS = """
INSERT INTO review_policies (daily_sentences, sampled_share, objective, target, attribution_share, reviewers)
VALUES (100000, 0.5, 'recall', 0.8, 0.2, 1)
"""


class Step(NamedTuple):
    """One change of a partition's row. A claim moves nothing: ``from_offset`` is ``to_offset``."""

    at: datetime
    partition: int
    owner: str
    generation: int
    incarnation: int
    from_offset: int
    to_offset: int

    def __str__(self) -> str:
        return f"{self.partition}: {self.from_offset} to {self.to_offset} by {self.owner} in {self.generation}"


class Database:
    """The server and its one database. ``url`` is for workers."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self._data = data

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """What the database answers. Raises psycopg.OperationalError while it is away."""
        with self._connect() as connection:
            return connection.execute(query, parameters).fetchall()

    def number(self, query: str, *parameters: object) -> int:
        """The one number that the database answers, 0 for NULL; the column is called ``n``."""
        return int(self.rows(query, *parameters)[0]["n"] or 0)

    def settled(self) -> int:
        """Offsets that are settled, of all partitions."""
        return self.number("SELECT sum(next_offset) AS n FROM partition_offsets")

    def open_jobs(self) -> int:
        """Attribution jobs that somebody still has to do."""
        return self.number("SELECT count(*) AS n FROM attribution_jobs WHERE state IN ('waiting', 'running')")

    def untold_tasks(self) -> int:
        """Review tasks that are still to be told on their topic."""
        return self.number("SELECT count(*) AS n FROM outbox WHERE state IN ('waiting', 'running')")

    def owners(self) -> dict[int, str]:
        """Who holds each partition that was ever claimed."""
        return {row["partition"]: row["owner"] for row in self.rows("SELECT partition, owner FROM partition_offsets")}

    def positions(self) -> dict[int, int]:
        """The next offset of each partition that was ever claimed."""
        rows = self.rows("SELECT partition, next_offset FROM partition_offsets")
        return {row["partition"]: row["next_offset"] for row in rows}

    def steps(self) -> list[Step]:
        """The whole history, in the order in which it happened to each partition."""
        names = ", ".join(Step._fields)
        return [Step(**row) for row in self.rows(f"SELECT {names} FROM soak_steps ORDER BY id")]

    def prepare(self) -> None:
        """Begin to write the history down, and let people be asked about thousands of sentences."""
        with self._connect() as connection:
            connection.execute(_HISTORY)
            connection.execute(_BUSY_REVIEWERS)

    def stop(self, mode: str) -> None:
        """Stop the server: ``fast`` in good order, ``immediate`` as a crash would."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Start it again and wait until it lets us in."""
        self._control("-l", "server.log", "start")

    def frozen(self) -> AbstractContextManager[None]:
        """The server answers nothing and closes nothing."""
        return frozen(self.url)

    def back_up(self) -> None:
        """Keep a copy of all files, of a server that was stopped in good order; it runs again afterwards."""
        self.stop("fast")
        shutil.rmtree(self._backup, ignore_errors=True)
        self._copy(self._data, self._backup)
        self.start()

    def restore(self) -> None:
        """Go back to the copy."""
        self.stop("fast")
        shutil.rmtree(self._data)
        self._copy(self._backup, self._data)
        self.start()

    @property
    def _backup(self) -> Path:
        return self._data.with_suffix(".backup")

    def _copy(self, source: Path, target: Path) -> None:
        # With its owner, who may not be the one that we are.
        subprocess.run(["cp", "-a", source, target], check=True)

    def _control(self, *arguments: str) -> None:
        options = run_options(_server_user()) | {"cwd": self._data}
        command: list[str | Path] = [program("pg_ctl"), "-D", self._data, "-w", "-t", "60", *arguments]
        # No pipe: the server would inherit it, and reading it to its end would wait for the server's.
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **options)

    def _connect(self) -> psycopg.Connection[dict[str, Any]]:
        address = self.url.replace("postgresql+psycopg://", "postgresql://", 1)
        return psycopg.connect(address, row_factory=dict_row, connect_timeout=5)


@contextmanager
def database(directory: Path) -> Iterator[Database]:
    """A migrated database with its history on, on a server of its own that keeps what was committed."""
    with embedded_postgres(directory) as url:
        upgrade(url)
        found = Database(url, directory.resolve() / f"postgres-{major_version()}")
        found.prepare()
        yield found
