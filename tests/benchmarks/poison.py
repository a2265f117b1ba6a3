"""What one poisoned message in a hundred costs the others. `make bench-poison`. Writes build/bench/poison.json.

The same worker settles the same messages twice, in turn: all of them whole, and one in a hundred cut in half, which
makes it a dead letter. Counted are the whole messages in a second. Then every dead letter is compared with what was
sent: once, with its bytes, its header and its reason.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import psutil
import typer

from migrations.upgrade import upgrade
from schemas.dead_letter import DeadLetter, original_headers
from schemas.reject_reason import RejectReason
from tests.apache_kafka import apache_kafka
from tests.benchmarks.throughput import (
    DEAD_LETTERS,
    NUMBER_HEADER,
    PARTITIONS,
    SESSION_TIMEOUT_S,
    Window,
    consume,
    postmaster_of,
    send,
)
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.scan import TopicScan
from worker.embedded.databases import create_database, drop_database
from worker.embedded.guarded import free_port
from worker.embedded.postgres import embedded_postgres
from worker.rules.records import Record
from worker.runtime.logs import configure_logs
from worker.settings.settings import read_settings

OUTPUT = Path("build/bench/poison.json")
POISONED_EVERY = 100
REASONS = {RejectReason.INVALID_JSON}


@dataclass(frozen=True, slots=True)
class Figures:
    """Whole messages a second, the median of each kind; what is wrong with the dead letters, 0 if nothing is."""

    messages: int
    poisoned: int
    model_ms: float
    clean_per_s: float
    beside_poison_per_s: float
    ratio: float
    letters_missing: int
    letters_repeated: int
    letters_wrong: int


def main(
    messages: Annotated[int, typer.Option(min=200, help="Messages in each topic.")] = 10_000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each kind.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Messages in a batch.")] = 16,
    model_ms: Annotated[float, typer.Option(min=0, help="What an answer takes the model: a large GPU, or 0.")] = 2.0,
) -> None:
    """Run, report, and end with status 1 if a dead letter is missing, repeated or not what was sent."""
    configure_logs("error")
    figures = measure(messages, runs, batch, model_ms)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")
    print(json.dumps(asdict(figures), indent=2))
    raise typer.Exit(1 if figures.letters_missing + figures.letters_repeated + figures.letters_wrong else 0)


def measure(messages: int, runs: int, batch: int, model_ms: float) -> Figures:
    """Settle both topics in turn. Raises KafkaCannotRun."""
    rates: dict[str, list[float]] = {"clean": [], "poisoned": []}
    with ExitStack() as stack:
        bootstrap = stack.enter_context(apache_kafka()).bootstrap
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = stack.enter_context(embedded_postgres(directory))
        upgrade(create_database(server, "template"))
        letters = [f"{DEAD_LETTERS}-{run}" for run in range(runs)]
        with BrokerAdmin(bootstrap) as admin:
            admin.create_topics([NewTopic(kind, PARTITIONS) for kind in rates])
            admin.create_topics([NewTopic(name, 1) for name in letters])
        send(bootstrap, messages, "clean")
        sent = send(bootstrap, messages, "poisoned", _is_poisoned)
        postmaster = postmaster_of(directory)
        for run in range(runs):
            for kind in rates:
                window = _run(
                    bootstrap,
                    server,
                    postmaster,
                    kind=kind,
                    letters=letters[run],
                    run=run,
                    messages=messages,
                    batch=batch,
                    model_s=model_ms / 1000,
                )
                rates[kind].append(_whole_per_s(window, messages, kind))
        wrong = [_wrong_letters(bootstrap, name, sent) for name in letters]
    clean, beside = (statistics.median(rates[kind]) for kind in rates)
    return Figures(messages, len(sent), model_ms, clean, beside, beside / clean, *map(sum, zip(*wrong, strict=True)))


def _is_poisoned(number: int) -> bool:
    return number % POISONED_EVERY == POISONED_EVERY - 1


def _run(
    bootstrap: str,
    server: str,
    postmaster: psutil.Process,
    *,
    kind: str,
    letters: str,
    run: int,
    messages: int,
    batch: int,
    model_s: float,
) -> Window:
    database = f"{kind}_{run}"
    settings = read_settings(
        database_url=create_database(server, database, template="template"),
        kafka_bootstrap_servers=bootstrap,
        topic=kind,
        dead_letter_topic=letters,
        consumer_group=database,
        batch_messages=batch,
        session_timeout_s=SESSION_TIMEOUT_S,
        http_port=free_port(),
    )
    window = consume(settings, postmaster, messages, model_s)
    drop_database(server, database)
    return window


def _whole_per_s(window: Window, messages: int, kind: str) -> float:
    if window.first is None or window.last is None:
        raise ValueError(f"{messages} messages are too few")
    share = 1 - 1 / POISONED_EVERY if kind == "poisoned" else 1.0
    return share * (messages - window.messages_before) / (window.last.wall_s - window.first.wall_s)


def _wrong_letters(bootstrap: str, topic: str, sent: Mapping[int, bytes]) -> tuple[int, int, int]:
    """How many letters are missing, repeated, and not what was sent."""
    letters = [record for record in TopicScan(bootstrap, topic) if isinstance(record, Record)]
    numbers = [int(dict(original_headers(letter.headers))[NUMBER_HEADER] or b"-1") for letter in letters]
    wrong = [
        number
        for number, letter in zip(numbers, letters, strict=True)
        if letter.value != sent.get(number) or DeadLetter.from_headers(letter.headers).reason not in REASONS
    ]
    return len(sent.keys() - set(numbers)), len(numbers) - len(set(numbers)), len(wrong)


if __name__ == "__main__":
    typer.run(main)
