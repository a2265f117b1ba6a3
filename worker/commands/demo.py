"""The demonstration: the whole audit on embedded parts, with the verdicts read back from Postgres."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gasp_core.packaged import PACKAGED_MODEL, cache_directory, resolve_model
from migrations.upgrade import upgrade
from worker.broker.admin import BrokerAdmin
from worker.broker.sink import RecordSink
from worker.commands.demo_page import print_verdicts, write_json
from worker.commands.replay import replay_messages
from worker.embedded.broker import embedded_broker
from worker.embedded.databases import create_database, drop_database, ensure_database, psql_command
from worker.embedded.postgres import embedded_postgres
from worker.errors import WorkerError
from worker.ingest.topics import wanted_topics
from worker.runtime.logs import configure_logs
from worker.runtime.stop import Stop
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.security import UNSECURED
from worker.settings.settings import Settings, read_settings
from worker.store.store import Store, open_store
from worker.terminal.inputs import read_messages

DATABASE = "gasp_demo"
PARTITIONS = 2
LOOK_S = 0.2

# Small, so that the bar moves.
BATCH_MESSAGES = 4

# The embedded broker holds a joining worker back for half of this.
SESSION_TIMEOUT_S = 4.0

# All is sent at once.
TRACE_GRACE_S, TRACE_TIMEOUT_S = 1.0, 5.0


def run_demo(source: Path | None, *, limit: int | None, json_output: Path | None) -> None:
    """Audit the exchanges of ``source`` (default: the samples) and print what Postgres holds then.

    Raises InputFileError if the file cannot be used, and what a part raises if it cannot start.
    """
    console = Console(stderr=True)
    started = time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(_logs_in_file(_home() / "worker.log"))
        with console.status("starting PostgreSQL and a broker"):
            settings = _start_parts(stack)
        if not (cache_directory() / "models" / PACKAGED_MODEL / "config.json").is_file():
            console.print("converting the packaged model, once")
        resolve_model(PACKAGED_MODEL)
        sent = _replay(settings, source, limit)
        store = stack.enter_context(open_store(settings.database, application_name="gasp-demo"))
        _audit(settings, store, sent, console)
        print_verdicts(store.sentences, store.ledger, elapsed_s=time.monotonic() - started)
        if json_output is not None:
            write_json(store.sentences, json_output)
            console.print(f"wrote {json_output}")


def open_psql() -> None:
    """Replace this process's work by psql on the database of the last demonstration, until the person leaves it."""
    if not (_home() / "postgres").is_dir():
        raise WorkerError(
            "there is no demonstration to look at yet: run gasp-worker demo first (in a checkout, make demo)"
        )
    with embedded_postgres(_home() / "postgres") as server:
        # The wheel's psql; Ctrl-C in it is its own affair.
        subprocess.run(psql_command(ensure_database(server, DATABASE)), check=False)  # noqa: S603 - our own arguments


def _home() -> Path:
    return cache_directory() / "demo"


def _start_parts(stack: ExitStack) -> Settings:
    """A database made anew, a broker with the topics, and the settings that lead there."""
    server = stack.enter_context(embedded_postgres(_home() / "postgres"))
    drop_database(server, DATABASE)
    settings = read_settings(
        database_url=create_database(server, DATABASE),
        kafka_bootstrap_servers=stack.enter_context(embedded_broker()),
        model=PACKAGED_MODEL,
        default_app="demo",
        batch_messages=BATCH_MESSAGES,
        session_timeout_s=SESSION_TIMEOUT_S,
        trace_grace_s=TRACE_GRACE_S,
        trace_timeout_s=TRACE_TIMEOUT_S,
        # The only worker there is may have the machine.
        threads=os.cpu_count() or 1,
        **UNSECURED,
    )
    upgrade(settings.database)
    with BrokerAdmin(settings.kafka_bootstrap_servers) as admin:
        admin.create_topics(wanted_topics(settings, partitions=PARTITIONS, replication=1))
    return settings


def _replay(settings: Settings, source: Path | None, limit: int | None) -> int:
    with (
        RecordSink(settings.kafka_bootstrap_servers, client_id="demo-replay") as sink,
        as_file(files("worker") / "samples.jsonl") as samples,
    ):
        return replay_messages(islice(read_messages(source or samples), limit), sink, settings.first_topic)


def _audit(settings: Settings, store: Store, sent: int, console: Console) -> None:
    """Run the worker, as it runs in production, until every message has an outcome and every job is done."""
    stop = Stop()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            run_service(settings, set(Role), stop)
        except BaseException as fault:  # noqa: BLE001 - raised again in the thread that watches
            faults.append(fault)

    worker = threading.Thread(target=work, name="worker")
    worker.start()
    try:
        _watch(store, sent, worker, console)
    finally:
        stop.set()
        worker.join()
    if faults:
        raise faults[0]


def _watch(store: Store, sent: int, worker: threading.Thread, console: Console) -> None:
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        scoring = progress.add_task("scoring", total=sent)
        attributing = progress.add_task("attributing", total=None)
        while worker.is_alive():
            settled = store.ledger.records()
            # Asked before the jobs: a trace that is closed may leave one.
            open_traces = store.traces.open().open
            backlog = store.attribution_jobs.backlog()
            open_jobs = backlog.waiting + backlog.running
            closed_jobs = backlog.done + backlog.failed
            progress.update(scoring, completed=settled)
            progress.update(attributing, completed=closed_jobs, total=open_jobs + closed_jobs or None)
            if settled >= sent and not open_traces and not open_jobs:
                return
            worker.join(LOOK_S)


@contextmanager
def _logs_in_file(path: Path) -> Iterator[None]:
    """Keep the worker's log off the screen that shows its verdicts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        configure_logs("info", file)
        try:
            yield
        finally:
            configure_logs("warning")
