"""Worker processes, as an operator runs them, and the rows they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.brokers import Broker
from tests.exchanges import exchange
from tests.forked import Forked, run_command
from tests.waiting import DEADLINE_S, wait_until
from worker.broker.sink import RecordSink
from worker.commands.replay import replay_messages
from worker.terminal.inputs import read_messages

WORKER = Path(sys.executable).with_name("gasp-worker")


@dataclass(slots=True)
class Worker:
    """One worker process. Its log is kept for the message of a failing test."""

    process: Forked
    log: Path

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; gives the exit status."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def events(self, name: str) -> int:
        """How often an event is in the log."""
        return self.log.read_text(encoding="utf-8").count(f'"event": "{name}"')


@dataclass(slots=True)
class Deployment:
    """A topic, a database and a model, and the workers on them."""

    broker: Broker
    database_url: str
    model: Path
    directory: Path
    partitions: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)
    topic: str = ""
    dead_letter_topic: str = ""

    def __post_init__(self) -> None:
        config = {"max.message.bytes": str(8 * 1024 * 1024)}
        self.topic = self.broker.create_topic(self.partitions, config)
        self.dead_letter_topic = self.broker.create_topic(1, config)

    def environment(self) -> dict[str, str]:
        """What an operator would export."""
        settings: dict[str, object] = {
            "database_url": self.database_url,
            "kafka_bootstrap_servers": self.broker.bootstrap,
            "topic": self.topic,
            "dead_letter_topic": self.dead_letter_topic,
            "consumer_group": f"group-of-{self.topic}",
            "review_tasks_topic": "",
            "review_labels_topic": "",
            "model": self.model,
            "device": "cpu",
            # A random model needs no reference set to be judged by.
            "detector": "gap",
            "batch_messages": 4,
            # A job of a worker that was killed comes back soon.
            "attribution_lease_s": 3,
            "session_timeout_s": self.broker.session_timeout_ms / 1000,
            **self.settings,
        }
        # One thread a process: several of them share these machines.
        own = {f"GASP_{name.upper()}": str(value) for name, value in settings.items()}
        return {**os.environ, **own, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        log = self.directory / f"command-{time.monotonic_ns()}.log"
        process = Forked(run_command, arguments, self.environment(), log)
        try:
            status = process.wait(DEADLINE_S)
        finally:
            process.kill()
        texts = (path.read_text(encoding="utf-8") for path in (log.with_suffix(".out"), log))
        return subprocess.CompletedProcess(["gasp-worker", *arguments], status, *texts)

    def send(self, first: int, count: int) -> None:
        """Log exchanges that differ from those with other numbers."""
        values = [json.dumps(exchange(number)).encode() for number in range(first, first + count)]
        self.broker.send(self.topic, values)

    def replay(self, file: Path) -> None:
        """Send a file's lines, as the command does but without waiting for its process."""
        with RecordSink(self.broker.bootstrap) as sink:
            replay_messages(read_messages(file), sink, self.topic)

    @contextmanager
    def worker(
        self, roles: str = "consume,attribute,maintain", life: Callable[..., None] = run_command
    ) -> Iterator[Worker]:
        """A running worker; killed at the end if it still runs. ``life`` may be a variation of the command."""
        log = self.directory / f"worker-{time.monotonic_ns()}.log"
        process = Forked(life, ("run", "--roles", roles), self.environment(), log)
        try:
            yield Worker(process, log)
        finally:
            process.kill()
            process.wait()

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """What the database answers."""
        address = self.database_url.replace("postgresql+psycopg://", "postgresql://")
        with psycopg.connect(address, row_factory=dict_row) as connection:
            return connection.execute(query, parameters).fetchall()

    def execute(self, statement: str) -> None:
        """Change the database behind the worker's back."""
        with psycopg.connect(self.database_url.replace("postgresql+psycopg://", "postgresql://")) as connection:
            connection.execute(statement)

    def count(self, table: str) -> int:
        """Rows of a table."""
        return int(self.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"])

    def open_jobs(self) -> int:
        """Attribution jobs that are not done."""
        return self.count("attribution_jobs WHERE state IN ('waiting', 'running')")

    def wait_settled(self, messages: int, *, deadline_s: float = DEADLINE_S) -> None:
        """Until so many offsets have their outcome and no attribution is left."""
        wait_until(lambda: self.count("ledger") >= messages, what=f"{messages} ledger rows", deadline_s=deadline_s)
        wait_until(lambda: self.open_jobs() == 0, what="attribution", deadline_s=deadline_s)

    def picture(self) -> dict[str, list[dict[str, Any]]]:
        """Every row that a message leaves, without the numbers and times that each run gives anew.

        Scores of two runs are to be compared by ``assert_alike``: a batch of others rounds otherwise.
        """
        return {name: self.rows(query) for name, query in PICTURE.items()}


PICTURE = {
    "ledger": "SELECT partition, record_offset, outcome, reason, detail FROM ledger ORDER BY 1, 2",
    "offsets": "SELECT partition, next_offset FROM partition_offsets ORDER BY 1",
    "interactions": """
        SELECT app, interaction_id, revision, is_current, encode(content_hash, 'hex') AS content, answer, repairs
        FROM interactions ORDER BY 1, 2, 3""",
    "passages": """
        SELECT i.app, i.interaction_id, i.revision, p.position, p.passage_id, p.text
        FROM passages p JOIN interactions i ON i.id = p.interaction_pk ORDER BY 1, 2, 3, 4""",
    "sentences": """
        SELECT i.app, i.interaction_id, i.revision, s.sentence_index, s.start_char, s.end_char, s.kind, s.n_tokens,
               s.score, s.gap, s.skip_reason, s.flagged, s.supporting_chunk
        FROM sentences s JOIN verdicts v ON v.id = s.verdict_id JOIN interactions i ON i.id = v.interaction_pk
        ORDER BY 1, 2, 3, 4""",
    "attributions": """
        SELECT i.app, i.interaction_id, i.revision, a.sentence_index, a.chunk_index, a.drop
        FROM chunk_attributions a JOIN verdicts v ON v.id = a.verdict_id JOIN interactions i ON i.id = v.interaction_pk
        ORDER BY 1, 2, 3, 4, 5""",
    "jobs": "SELECT state, count(*) AS n FROM attribution_jobs GROUP BY 1 ORDER BY 1",
}
