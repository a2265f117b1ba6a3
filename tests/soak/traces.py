"""Traces that lie anywhere and come in any order are told once, whatever ends: `make soak-traces`.

Writes build/bench/traces.json. Traces of five to fifteen spans, in messages of one to three, are shuffled over the
partitions of a topic; some messages come twice and some never. Two workers with a scorer that needs no model collect
and close them, and are killed again and again. Then every offset, trace and exchange is compared with what it must be.
At last the same exchanges go through one undisturbed worker as traces and as rows, side by side.
"""

from __future__ import annotations

import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import psutil
import psycopg
import typer
from psycopg.rows import dict_row
from rich.progress import Progress

from migrations.upgrade import upgrade
from schemas.decoding import Decoded, decode_exchange, decode_payload
from schemas.traces.assembly import assemble
from tests.apache_kafka import KafkaCannotRun, apache_kafka
from tests.exchanges import exchange
from tests.forked import Forked
from tests.traces import LEAST_SPANS, message, spans, trace_id
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.sink import RecordSink
from worker.embedded.broker import embedded_broker
from worker.embedded.databases import create_database
from worker.embedded.postgres import embedded_postgres

OUTPUT = Path("build/bench/traces.json")
PARTITIONS = 12
MOST_SPANS = 15
MOST_SPANS_A_MESSAGE = 3
TWICE, LOST = 0.03, 0.02
GRACE_S, TIMEOUT_S = 2.0, 20.0
SESSION_TIMEOUT_S = 6.0
LOOK_S = 0.5
FLUSH_EVERY = 2_000
FLUSH_TIMEOUT_S = 120.0
TOPIC, ROWS_TOPIC, DEAD_LETTERS = "traces", "rows", "dead-letters"
WORKERS = 2


@dataclass(slots=True)
class Sent:
    """What was sent of one trace: its messages, and how many were lost."""

    messages: list[bytes] = field(default_factory=list)
    lost: int = 0


@dataclass(slots=True)
class Crew:
    """Worker processes, each started again when it has ended; ``peak_bytes`` is the most that one held."""

    environment: Mapping[str, str]
    folder: Path
    workers: list[Forked] = field(default_factory=list)
    starts: int = 0
    peak_bytes: int = 0

    def keep_up(self) -> None:
        """Start what has ended, and look how large the others are."""
        for slot in range(WORKERS):
            if slot >= len(self.workers):
                self.workers.append(self._start())
            elif self.workers[slot].poll() is not None:
                self.workers[slot] = self._start()
        for worker in self.workers:
            try:
                self.peak_bytes = max(self.peak_bytes, psutil.Process(worker.pid).memory_info().rss)
            except psutil.NoSuchProcess:
                continue

    def kill(self, slot: int) -> None:
        """End one at once."""
        self.workers[slot].kill()
        self.workers[slot].wait(30)

    def _start(self) -> Forked:
        self.starts += 1
        return Forked(soak_life, (), self.environment, self.folder / f"worker-{self.starts}.log")


def soak_life() -> None:
    """A worker with the scorer of the soak, until it is told to stop."""
    from tests.soak.scorer import SoakScorer
    from worker.cli import stop_on_signals
    from worker.runtime.logs import configure_logs
    from worker.service import run_service
    from worker.settings.roles import Role
    from worker.settings.settings import read_settings

    settings = read_settings()
    configure_logs(settings.log_level)
    run_service(settings, {Role.CONSUME, Role.MAINTAIN}, stop_on_signals(), load=lambda _: SoakScorer(0.0))
    os._exit(0)


def main(
    *,
    traces: Annotated[int, typer.Option(min=1, help="Traces to send.")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="Workers that are killed, one after the other.")] = 10,
    compared: Annotated[int, typer.Option(min=0, help="Exchanges that go both as traces and as rows.")] = 2_000,
    seed: Annotated[int | None, typer.Option(help="Of order, repeats and losses.")] = None,
    output: Annotated[Path, typer.Option(help="Where the figures go.")] = OUTPUT,
) -> None:
    """Send, kill, compare. Exit status: 0 if all is well, 1 if not."""
    chosen = random.randrange(1_000_000) if seed is None else seed
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(embedded_postgres(folder / "postgres"))
        name, bootstrap = _broker(stack)
        url = create_database(server, "traces")
        upgrade(url)
        figures = {"seed": chosen, "broker": name, "processor": _processor()}
        faults, found = _soak(url, bootstrap, folder, traces, kills, random.Random(chosen))
        figures |= found
        if compared:
            side = create_database(server, "side")
            upgrade(side)
            figures["side_by_side"] = _side_by_side(side, bootstrap, folder, compared)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**figures, "faults": faults}, indent=2) + "\n", encoding="utf-8")
    typer.echo(json.dumps(figures, indent=2))
    for fault in faults[:20]:
        typer.echo(f"FAULT {fault}", err=True)
    raise typer.Exit(1 if faults else 0)


def _broker(stack: ExitStack) -> tuple[str, str]:
    try:
        kafka = stack.enter_context(apache_kafka())
    except KafkaCannotRun:
        return "tansu", stack.enter_context(embedded_broker())
    return "apache", kafka.bootstrap


def _soak(
    url: str, bootstrap: str, folder: Path, traces: int, kills: int, rng: random.Random
) -> tuple[list[str], dict[str, Any]]:
    sent, order = _made(traces, rng)
    _topics(bootstrap)
    crew = Crew(_environment(url, bootstrap, TOPIC, "soak"), folder)
    began = time.monotonic()
    total = len(order)
    with Progress() as progress:
        sending = progress.add_task("sending", total=total)
        _send(bootstrap, TOPIC, order, lambda count: progress.advance(sending, count), rng)
        settling = progress.add_task("collecting", total=total)
        closing = progress.add_task("closing", total=traces)
        marks = sorted(rng.sample(range(1, 100), kills)) if kills else []
        while True:
            crew.keep_up()
            booked, open_, known = _state(url)
            progress.update(settling, completed=booked)
            progress.update(closing, completed=known - open_)
            share = 50 * booked / total + 50 * (known - open_) / traces
            if marks and share >= marks[0]:
                crew.kill(rng.randrange(WORKERS))
                marks.pop(0)
            if booked >= total and not open_ and not marks:
                break
            time.sleep(LOOK_S)
    took_s = time.monotonic() - began
    for worker in crew.workers:
        worker.kill()
    faults = _faults(url, sent, total)
    sizes = _rows(
        url,
        "SELECT relname AS table, pg_total_relation_size(oid) AS bytes FROM pg_class "
        "WHERE relname IN ('traces', 'trace_pieces', 'ledger', 'interactions') ORDER BY relname",
    )
    closed = _rows(
        url,
        "SELECT closed_by, outcome, reason, count(*) AS traces, sum(closings) AS closings FROM traces "
        "GROUP BY closed_by, outcome, reason ORDER BY 4 DESC",
    )
    return faults, {
        "traces": traces,
        "messages": total,
        "lost_messages": sum(one.lost for one in sent.values()),
        "kills": kills,
        "starts": crew.starts,
        "seconds": round(took_s, 1),
        "messages_per_s": round(total / took_s, 1),
        "worker_peak_bytes": crew.peak_bytes,
        "tables": {row["table"]: row["bytes"] for row in sizes},
        "closed": [dict(row) | {"closings": int(row["closings"])} for row in closed],
        "revisions_beyond_the_first": _rows(url, "SELECT count(*) AS n FROM interactions WHERE revision > 1")[0]["n"],
    }


def _made(traces: int, rng: random.Random) -> tuple[dict[str, Sent], list[bytes]]:
    """What is sent of each trace, and all of it in the order of sending."""
    sent: dict[str, Sent] = {}
    order: list[bytes] = []
    for number in range(traces):
        left, one = spans(number, rng.randint(LEAST_SPANS, MOST_SPANS)), Sent()
        rng.shuffle(left)
        while left:
            size = rng.randint(1, MOST_SPANS_A_MESSAGE)
            value = message(left[:size])
            left = left[size:]
            if rng.random() < LOST:
                one.lost += 1
                continue
            one.messages.append(value)
            order += [value] * (2 if rng.random() < TWICE else 1)
        sent[trace_id(number)] = one
    # Not all over the place: what belongs together comes within some thousand messages.
    window = 5_000
    for start in range(0, len(order), window):
        part = order[start : start + window]
        rng.shuffle(part)
        order[start : start + window] = part
    return sent, order


def _faults(url: str, sent: Mapping[str, Sent], total: int) -> list[str]:
    """What is not as it must be."""
    faults: list[str] = []
    booked = _rows(url, "SELECT outcome, count(*) AS n FROM ledger GROUP BY outcome")
    if {row["outcome"]: row["n"] for row in booked} != {"collected": total}:
        faults.append(f"the ledger has {booked} for {total} messages")
    stored: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(url, "SELECT interaction_id, revision, is_current, question, answer, trace FROM interactions"):
        stored.setdefault(row["interaction_id"].partition(":")[0], []).append(row)
    traces = {row["trace_id"]: row for row in _rows(url, "SELECT * FROM traces")}
    for name, one in sent.items():
        faults += _faults_of(name, one, stored.pop(name, []), traces.get(name))
    faults += [f"{name}: nothing was sent of it" for name in stored]
    verdicts = _rows(url, "SELECT count(*) AS n FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk")
    interactions = _rows(url, "SELECT count(*) AS n FROM interactions")
    if verdicts != interactions:
        faults.append(f"{verdicts} verdicts on {interactions} revisions")
    return faults


def _faults_of(
    name: str, sent: Sent, stored: Sequence[Mapping[str, Any]], trace: Mapping[str, Any] | None
) -> Iterator[str]:
    if not sent.messages:
        if stored or trace:
            yield f"{name}: is known, although all of it was lost"
        return
    if trace is None or trace["state"] != "done":
        yield f"{name}: is not closed"
        return
    expected, is_complete = _expected(name, sent.messages)
    current = sorted((row["interaction_id"], row["question"], row["answer"]) for row in stored if row["is_current"])
    if current != expected:
        yield f"{name}: has {len(current)} exchanges that are not the {len(expected)} that were sent"
    if not sent.lost and (len(expected) != 1 or trace["closed_by"] != "complete"):
        yield f"{name}: all of it was sent, and it was closed by {trace['closed_by']}"
    if not is_complete and trace["closed_by"] != "time_out":
        yield f"{name}: lacks something, and was closed by {trace['closed_by']}"


def _expected(name: str, messages: Sequence[bytes]) -> tuple[list[tuple[str, str, str]], bool]:
    """The exchanges of a trace by what was sent of it, and whether nothing can be seen to be missing."""
    now = datetime.now(UTC)
    readings = [decode_payload(one, (), max_bytes=len(one), default_app="-", received_at=now) for one in messages]
    assembly = assemble([step for reading in readings for piece in reading.pieces for step in piece.steps], name)
    decoded = [decode_exchange(native, "otlp", default_app="-", received_at=now) for native in assembly.exchanges]
    found = [one.interaction for one in decoded if isinstance(one, Decoded)]
    return sorted((one.interaction_id, one.question, one.answer) for one in found), assembly.is_complete


def _side_by_side(url: str, bootstrap: str, folder: Path, count: int) -> dict[str, Any]:
    """The same exchanges, as traces of ten spans in five messages and as rows, through one worker each."""
    pieces: list[bytes] = []
    for number in range(count):
        those = spans(number, 10)
        pieces += [message(those[place : place + 2]) for place in range(0, 10, 2)]
    rows = [json.dumps(exchange(number)).encode() for number in range(count)]
    figures = {}
    for topic, values in ((TOPIC, pieces), (ROWS_TOPIC, rows)):
        own = f"{topic}-side"
        with BrokerAdmin(bootstrap) as admin:
            admin.create_topics([NewTopic(own, PARTITIONS)])
        _send(bootstrap, own, values, lambda _: None, random.Random(0))
        worker = Forked(soak_life, (), _environment(url, bootstrap, own, own), folder / f"{own}.log")
        began = None
        known = _rows(url, "SELECT count(*) AS n FROM interactions")[0]["n"]
        while (done := _rows(url, "SELECT count(*) AS n FROM interactions")[0]["n"] - known) < count:
            if worker.poll() is not None:
                raise RuntimeError(f"the worker on {own} ended; see its log")
            if began is None and _rows(url, "SELECT count(*) AS n FROM ledger WHERE topic = %s", own)[0]["n"]:
                began = time.monotonic()
            time.sleep(LOOK_S / 5)
        took_s = time.monotonic() - (began or time.monotonic())
        cpu = psutil.Process(worker.pid).cpu_times()
        worker.kill()
        worker.wait(30)
        figures[topic] = {
            "messages": len(values),
            "exchanges_per_s": round(done / took_s, 1),
            "messages_per_s": round(len(values) / took_s, 1),
            "worker_cpu_ms_an_exchange": round(1000 * (cpu.user + cpu.system) / done, 2),
        }
        _rows(url, "TRUNCATE interactions, traces, trace_pieces, ledger CASCADE")
    return figures


def _topics(bootstrap: str) -> None:
    with BrokerAdmin(bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS), NewTopic(DEAD_LETTERS, 1)])


def _send(
    bootstrap: str, topic: str, values: Sequence[bytes], on_sent: Callable[[int], None], rng: random.Random
) -> None:
    """Send each value to a partition of its own choice, as messages without a key go."""
    with RecordSink(bootstrap) as sink:
        for number, value in enumerate(values, 1):
            sink.send(topic, value, key=rng.randbytes(8))
            if number % FLUSH_EVERY == 0:
                sink.flush(FLUSH_TIMEOUT_S)
                on_sent(FLUSH_EVERY)
        sink.flush(FLUSH_TIMEOUT_S)
    on_sent(len(values) % FLUSH_EVERY)


def _environment(url: str, bootstrap: str, topic: str, group: str) -> dict[str, str]:
    settings = {
        "database_url": url,
        "kafka_bootstrap_servers": bootstrap,
        "topic": topic,
        "dead_letter_topic": DEAD_LETTERS,
        "consumer_group": group,
        "review_tasks_topic": "",
        "review_labels_topic": "",
        "batch_messages": 200,
        "session_timeout_s": SESSION_TIMEOUT_S,
        "trace_grace_s": GRACE_S,
        "trace_timeout_s": TIMEOUT_S,
        "detector": "gap",
        "log_level": "warning",
    }
    return {
        **os.environ,
        **{f"GASP_{name.upper()}": str(value) for name, value in settings.items()},
        "OMP_NUM_THREADS": "1",
    }


def _state(url: str) -> tuple[int, int, int]:
    """How many offsets are booked, how many traces are open, and how many there are."""
    (row,) = _rows(
        url,
        "SELECT (SELECT count(*) FROM ledger) AS booked, count(*) FILTER (WHERE state <> 'done') AS open, "
        "count(*) AS known FROM traces",
    )
    return row["booked"], row["open"], row["known"]


def _rows(url: str, statement: str, *parameters: object) -> list[dict[str, Any]]:
    address = url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(address, row_factory=dict_row) as connection:
        done = connection.execute(statement, parameters or None)
        return done.fetchall() if done.description else []


def _processor() -> dict[str, object]:
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.split(":", 1)[1].split() for line in flags.splitlines() if line.startswith("flags")]
    return {"machine": platform.machine(), "cores": os.cpu_count(), "flags": sorted(names[0]) if names else []}


if __name__ == "__main__":
    typer.run(main)
