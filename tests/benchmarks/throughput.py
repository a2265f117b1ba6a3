"""What a worker does in a second when the model costs nothing. `make bench-throughput`.

A worker with a scorer that answers at once settles messages of realistic size, eight sentences and five passages
each, from a real broker into a durable PostgreSQL, once for every size of batch. The figures leave out the start: they
begin when the first batch is settled. Writes build/bench/throughput.json.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

import psutil
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from gasp_core.grounding import (
    AnswerGrounding,
    Exchange,
    Method,
    Sentence,
    SentenceGrounding,
    Truncation,
    UnitKind,
)
from gasp_core.identity import ScorerIdentity
from gasp_core.passes.taps import Tap
from gasp_core.plan import Limits
from migrations.upgrade import upgrade
from tests.apache_kafka import KafkaCannotRun, apache_kafka
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.sink import RecordSink
from worker.embedded.broker import embedded_broker
from worker.embedded.databases import create_database, drop_database
from worker.embedded.guarded import free_port
from worker.embedded.postgres import embedded_postgres
from worker.embedded.programs import major_version
from worker.rules.settlement import Settled
from worker.runtime.logs import configure_logs
from worker.runtime.metrics import Stage
from worker.runtime.stop import Stop
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.settings import Settings, read_settings

OUTPUT = Path("build/bench/throughput.json")
TOPIC, DEAD_LETTERS, PARTITIONS = "interactions", "dead-letters", 4
SESSION_TIMEOUT_S = 6
NUMBER_HEADER = "number"
SENTENCES, SENTENCE_CHARS = 8, 120
PASSAGES, PASSAGE_CHARS = 5, 800
WORDS = 5_000
STAGES = (Stage.POLL, Stage.DECODE, Stage.KNOWN, Stage.SCORE, Stage.JUDGE, Stage.STORE, Stage.COMMIT)
IDENTITY = ScorerIdentity(model="instant", revision="none", dtype="none", template="none", method="instant-1")


class BrokerName(StrEnum):
    """What the worker reads from."""

    TANSU = "tansu"
    APACHE = "apache"


class InstantScorer:
    """Gives every answer the same eight sentences, none of them low enough to be flagged or attributed.

    ``model_s`` is what an answer takes, in seconds.
    """

    def __init__(self, model_s: float = 0.0) -> None:
        self._model_s = model_s

    @property
    def identity(self) -> ScorerIdentity:
        """An identity that no model has."""
        return IDENTITY

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Cut each answer evenly."""
        time.sleep(self._model_s * len(exchanges))
        return [_grounding(len(exchange.answer), method) for exchange in exchanges]

    def reading(self, _: Sequence[Tap]) -> Self:
        return self

    def within(self, limits: Limits) -> Self:  # noqa: ARG002 - AnswerScorer's; nothing is ever too long
        """The same."""
        return self


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds since some moment: of the clock, of each process's CPU, and of each stage."""

    wall_s: float
    worker_s: float
    postgres_s: float
    broker_s: float
    stages_s: dict[str, float]


@dataclass(slots=True)
class Window:
    """From the end of the first batch to the end of the last."""

    first: Usage | None = None
    last: Usage | None = None
    messages_before: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. Milliseconds are for each interaction; a stage's are of its clock, the others of CPU."""

    broker: str
    batch_messages: int
    interactions: int
    interactions_per_s: float
    worker_ms: float
    postgres_ms: float
    broker_ms: float
    stages_ms: dict[str, float] = field(default_factory=dict)


def main(
    messages: Annotated[int, typer.Option(min=2, help="Messages to settle in each run.")] = 20_000,
    batch: Annotated[list[int] | None, typer.Option(help="Messages in a batch; may be repeated.")] = None,
    broker: Annotated[list[BrokerName] | None, typer.Option(help="May be repeated.")] = None,
) -> None:
    """Run and report."""
    configure_logs("error")
    results = []
    for name in broker or BrokerName:
        try:
            results += measure(name, messages, batch or [16, 64, 256, 1000])
        except KafkaCannotRun as reason:
            print(f"without {name}: {reason}")
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n", encoding="utf-8")
    Console(width=160).print(_table(results))


def measure(name: BrokerName, messages: int, batches: Sequence[int]) -> list[Figures]:
    """Settle the same messages with each size of batch. Raises KafkaCannotRun."""
    with ExitStack() as stack:
        bootstrap = stack.enter_context(_broker(name))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = stack.enter_context(embedded_postgres(directory))
        upgrade(create_database(server, "template"))
        with BrokerAdmin(bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS), NewTopic(DEAD_LETTERS, 1)])
        send(bootstrap, messages)
        return [_run(name, bootstrap, server, postmaster_of(directory), messages, batch) for batch in batches]


def send(
    bootstrap: str, messages: int, topic: str = TOPIC, poisoned: Callable[[int], bool] = lambda _: False
) -> dict[int, bytes]:
    """Fill the topic. Of a poisoned message, by its number, only half is sent; gives what was sent of each."""
    cut = {}
    chance = random.Random(1)
    vocabulary = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(WORDS)]
    with RecordSink(bootstrap) as sink:
        for number in range(messages):
            row = _row(chance, vocabulary, number)
            value = json.dumps(row).encode()
            if poisoned(number):
                cut[number] = value = value[: len(value) // 2]
            headers = [(NUMBER_HEADER, str(number).encode())]
            sink.send(topic, value, key=f"{row['interaction_id']}".encode(), headers=headers)
        sink.flush(120)
    return cut


def _row(chance: random.Random, vocabulary: Sequence[str], number: int) -> dict[str, object]:
    passages = [
        {"id": f"doc-{chance.randrange(10_000)}", "text": _text(chance, vocabulary, PASSAGE_CHARS), "score": 0.5}
        for _ in range(PASSAGES)
    ]
    return {
        "interaction_id": f"conversation-{number}",
        "app": "support-bot",
        "occurred_at": "2026-11-29T12:00:00Z",
        "question": _text(chance, vocabulary, SENTENCE_CHARS),
        "passages": passages,
        "answer": " ".join(_text(chance, vocabulary, SENTENCE_CHARS) for _ in range(SENTENCES)),
        "generator_model": "some-model",
        "metadata": {"user": f"u-{chance.randrange(1_000)}", "turn": 1},
    }


def _text(chance: random.Random, vocabulary: Sequence[str], chars: int) -> str:
    """Words to about so many characters; their average with a blank is seven."""
    return " ".join(chance.choices(vocabulary, k=chars // 7)).capitalize() + "."


def _grounding(answer_chars: int, method: Method) -> AnswerGrounding:
    step = answer_chars // SENTENCES
    sentences = tuple(
        SentenceGrounding(
            index=index,
            sentence=Sentence(index * step, (index + 1) * step, UnitKind.PROSE),
            n_tokens=30,
            gap=1.25,
            jsd_no_context=0.125,
            surprisal=1.5,
        )
        for index in range(SENTENCES)
    )
    return AnswerGrounding(method, sentences, (), Truncation(1000, 0, 240, 0), n_windows=1)


def _run(
    name: BrokerName, bootstrap: str, server: str, postmaster: psutil.Process, messages: int, batch: int
) -> Figures:
    database = f"run_{batch}"
    settings = read_settings(
        database_url=create_database(server, database, template="template"),
        kafka_bootstrap_servers=bootstrap,
        topic=TOPIC,
        dead_letter_topic=DEAD_LETTERS,
        consumer_group=f"batches-of-{batch}",
        batch_messages=batch,
        session_timeout_s=SESSION_TIMEOUT_S,
        http_port=free_port(),
        detector="gap",
    )
    window = consume(settings, postmaster, messages)
    drop_database(server, database)
    return _figures(name, batch, messages, window)


def consume(settings: Settings, postmaster: psutil.Process, messages: int, model_s: float = 0.0) -> Window:
    """Settle all messages."""
    stop, window = Stop(), Window()
    done = 0
    with Progress() as progress:
        task = progress.add_task(f"batches of {settings.batch_messages}", total=messages)

        def count(settled: Settled) -> None:
            nonlocal done
            done += sum(settled.counts.values())
            progress.update(task, completed=done)
            if window.first is None:
                window.first, window.messages_before = _usage(settings, postmaster), done
            if done >= messages:
                window.last = _usage(settings, postmaster)
                stop.set()

        run_service(settings, {Role.CONSUME}, stop, on_settled=count, load=lambda _: InstantScorer(model_s))
    return window


def _usage(settings: Settings, postmaster: psutil.Process) -> Usage:
    ours = psutil.Process()
    return Usage(
        wall_s=time.monotonic(),
        worker_s=time.process_time(),
        postgres_s=_cpu_s([postmaster, *postmaster.children()]) + sum(postmaster.cpu_times()[2:4]),
        # PostgreSQL is nobody's child: it runs by itself.
        broker_s=_cpu_s(ours.children(recursive=True)),
        stages_s=_stages_s(f"http://{settings.http_host}:{settings.http_port}/metrics"),
    )


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _stages_s(url: str) -> dict[str, float]:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own worker
        text = answer.read().decode()
    return {
        sample.labels["stage"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "gasp_stage_seconds_sum"
    }


def _figures(name: BrokerName, batch: int, messages: int, window: Window) -> Figures:
    first, last = window.first, window.last
    if first is None or last is None or window.messages_before >= messages:
        raise ValueError(f"{messages} messages are too few for batches of {batch}")
    interactions = messages - window.messages_before
    per_ms = 1000 / interactions
    return Figures(
        broker=name,
        batch_messages=batch,
        interactions=interactions,
        interactions_per_s=interactions / (last.wall_s - first.wall_s),
        worker_ms=(last.worker_s - first.worker_s) * per_ms,
        postgres_ms=(last.postgres_s - first.postgres_s) * per_ms,
        broker_ms=(last.broker_s - first.broker_s) * per_ms,
        stages_ms={stage: (last.stages_s[stage] - first.stages_s[stage]) * per_ms for stage in STAGES},
    )


def _table(results: Sequence[Figures]) -> Table:
    table = Table("broker", title="ms for each interaction: CPU of worker, PostgreSQL, broker; clock of each stage")
    for heading in ("batch", "a second", "worker", "PostgreSQL", "broker", *STAGES):
        table.add_column(heading, justify="right")
    for one in results:
        numbers = (one.worker_ms, one.postgres_ms, one.broker_ms, *one.stages_ms.values())
        cells = (f"{number:.3f}" for number in numbers)
        table.add_row(one.broker, str(one.batch_messages), f"{one.interactions_per_s:.0f}", *cells)
    return table


@contextmanager
def _apache() -> Iterator[str]:
    with apache_kafka() as node:
        yield node.bootstrap


def _broker(name: BrokerName) -> AbstractContextManager[str]:
    return embedded_broker() if name is BrokerName.TANSU else _apache()


def postmaster_of(directory: Path) -> psutil.Process:
    """The process of the embedded PostgreSQL below a directory."""
    file = directory / f"postgres-{major_version()}" / "postmaster.pid"
    return psutil.Process(int(file.read_text().split("\n", 1)[0]))


if __name__ == "__main__":
    typer.run(main)
