"""A worker with a million messages waiting: memory, and whether it says rightly how many wait. `make bench-backlog`.

Apache Kafka, PostgreSQL, a worker process with the fake scorer of the soak. Writes build/bench/backlog.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Annotated

import psutil
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.progress import Progress

from migrations.upgrade import upgrade
from tests.apache_kafka import apache_kafka
from tests.exchanges import exchange
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.sink import RecordSink
from worker.embedded.guarded import free_port
from worker.embedded.postgres import embedded_postgres
from worker.store.store import Store, open_store

OUTPUT = Path("build/bench/backlog.json")
TOPIC, DEAD_LETTERS = "interactions", "dead-letters"
PARTITIONS = 12
SETTLE_IN_S = 10.0
MIB = 1024 * 1024


def main(
    messages: Annotated[int, typer.Option(min=1000)] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=20, help="How long the worker is watched.")] = 120,
) -> None:
    """Fill the topic, start a worker, watch it, report."""
    with ExitStack() as stack:
        node = stack.enter_context(apache_kafka())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        url = stack.enter_context(embedded_postgres(directory / "data", durable=False))
        upgrade(url)
        with BrokerAdmin(node.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS), NewTopic(DEAD_LETTERS, 1)])
        fill(node.bootstrap, messages)
        store = stack.enter_context(open_store(url, application_name="gasp-bench"))
        port = free_port()
        process = stack.enter_context(worker(url, node.bootstrap, port, directory))
        report = watch(process, store, port, messages, seconds)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, value in report.items():
        print(f"{name:<32} {value:,.1f}")


def fill(bootstrap: str, messages: int) -> None:
    """Log so many exchanges."""
    with RecordSink(bootstrap) as sink, Progress() as progress:
        task = progress.add_task("filling", total=messages)
        for number in range(messages):
            sink.send(TOPIC, json.dumps(exchange(number)).encode(), key=b"%d" % number)
            if number % 10_000 == 0:
                sink.flush(60)
                progress.update(task, completed=number)
        sink.flush(60)


@contextmanager
def worker(url: str, bootstrap: str, port: int, directory: Path) -> Iterator[psutil.Process]:
    """A worker process; killed at the end."""
    settings = {
        "GASP_DATABASE_URL": url,
        "GASP_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "GASP_TOPIC": TOPIC,
        "GASP_DEAD_LETTER_TOPIC": DEAD_LETTERS,
        "GASP_HTTP_PORT": str(port),
        "GASP_LOG_LEVEL": "warning",
        "SOAK_DELAY_S": "0.01",
        "SOAK_FATE_FILE": str(directory / "fate"),
        "SOAK_BREAK": "none",
    }
    started = subprocess.Popen([sys.executable, "-m", "tests.soak.worker"], env={**os.environ, **settings})
    try:
        yield psutil.Process(started.pid)
    finally:
        started.kill()
        started.wait()


def watch(process: psutil.Process, store: Store, port: int, messages: int, seconds: float) -> dict[str, float]:
    """Sample once a second, from when the worker has read for a while."""
    wait_for_first(store)
    memory_mib, errors = [], []
    began_at, settled_before = time.monotonic(), settled(store)
    with Progress() as progress:
        task = progress.add_task("watching", total=seconds)
        while (passed_s := time.monotonic() - began_at) < seconds:
            progress.update(task, completed=passed_s)
            said, true = said_lag(port), messages - settled(store)
            if passed_s > SETTLE_IN_S:
                memory_mib.append(process.memory_info().rss / MIB)
                errors.append(abs(said - true))
            time.sleep(1)
    quarter = len(memory_mib) // 4
    return {
        "messages": messages,
        "settled": settled(store),
        "settled_per_second": (settled(store) - settled_before) / seconds,
        "rss_first_quarter_mib": max(memory_mib[:quarter]),
        "rss_last_quarter_mib": max(memory_mib[-quarter:]),
        "rss_highest_mib": max(memory_mib),
        "lag_error_highest_messages": max(errors),
    }


def wait_for_first(store: Store) -> None:
    """Until the first batch is settled."""
    deadline = time.monotonic() + 120
    while settled(store) == 0:
        if time.monotonic() > deadline:
            raise SystemExit("the worker settles nothing")
        time.sleep(0.2)


def settled(store: Store) -> int:
    """By the database; every partition began at zero."""
    return sum(store.offsets.positions(TOPIC).values())


def said_lag(port: int) -> float:
    """By the worker."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    page = connection.getresponse().read().decode()
    connection.close()
    families = text_string_to_metric_families(page)
    return sum(sample.value for family in families for sample in family.samples if sample.name == "gasp_lag_messages")


if __name__ == "__main__":
    typer.run(main)
