"""Where a worker's time goes: the model, or everything around it. `make bench-pipeline`.

A worker settles messages from the embedded broker into the embedded PostgreSQL, two passes each, with the packaged
model. Time outside the model is what polling, decoding, judging and storing add to it. Writes
build/bench/pipeline.json.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from gasp_core.grounding import AnswerGrounding, Exchange, Method
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.scorer import GroundingScorer
from migrations.upgrade import upgrade
from worker.broker.admin import BrokerAdmin, NewTopic
from worker.broker.sink import RecordSink
from worker.embedded.broker import embedded_broker
from worker.embedded.postgres import embedded_postgres
from worker.rules.settlement import Settled
from worker.runtime.logs import configure_logs
from worker.runtime.stop import Stop
from worker.service import run_service
from worker.settings.roles import Role
from worker.settings.settings import Settings, read_settings

SAMPLES = Path("worker/samples.jsonl")
OUTPUT = Path("build/bench/pipeline.json")
TOPIC, DEAD_LETTERS = "interactions", "dead-letters"


class TimedScorer(GroundingScorer):
    """Counts the seconds that are spent in it, and when it was first asked."""

    seconds = 0.0
    first_asked_at: float | None = None

    def score(self, exchanges: Sequence[Exchange], method: Method = Method.TWO_PASS) -> list[AnswerGrounding]:
        """Score and count."""
        started = time.monotonic()
        self.first_asked_at = self.first_asked_at or started
        try:
            return super().score(exchanges, method)
        finally:
            self.seconds += time.monotonic() - started


def main(
    messages: Annotated[int, typer.Option(min=1, help="Messages to settle.")] = 200,
    batch: Annotated[int, typer.Option(min=1, help="Messages in a batch.")] = 16,
) -> None:
    """Run and report."""
    configure_logs("error")
    scorer = TimedScorer(load_model(resolve_model(PACKAGED_MODEL)))
    with ExitStack() as stack:
        bootstrap = stack.enter_context(embedded_broker())
        directory = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        url = stack.enter_context(embedded_postgres(Path(directory)))
        upgrade(url)
        with BrokerAdmin(bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, 2), NewTopic(DEAD_LETTERS, 1)])
        with RecordSink(bootstrap) as sink:
            send(sink, messages)
        settings = read_settings(
            database_url=url,
            kafka_bootstrap_servers=bootstrap,
            topic=TOPIC,
            dead_letter_topic=DEAD_LETTERS,
            batch_messages=batch,
            session_timeout_s=2,
            detector="gap",
        )
        wall_s = consume(settings, scorer, messages=messages)
    outside_s = wall_s - scorer.seconds
    report = {
        "messages": messages,
        "wall_s": wall_s,
        "model_s": scorer.seconds,
        "outside_model_s": outside_s,
        "outside_model_ms_per_message": 1000 * outside_s / messages,
        "outside_model_share": outside_s / wall_s,
    }
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for name, value in report.items():
        print(f"{name:<30} {value:.4g}")


def send(sink: RecordSink, messages: int) -> None:
    """Send the samples over and over, each time under new ids."""
    rows = [json.loads(line) for line in SAMPLES.read_text(encoding="utf-8").splitlines()]
    for number in range(messages):
        row = rows[number % len(rows)]
        row = row | {"interaction_id": f"{row['interaction_id']}-{number}"}
        sink.send(TOPIC, json.dumps(row).encode(), key=row["interaction_id"].encode())
    sink.flush(60)


def consume(settings: Settings, scorer: TimedScorer, *, messages: int) -> float:
    """Settle all messages; gives the seconds from the first batch to the last row."""
    stop = Stop()
    done = 0
    ended_at = 0.0
    with Progress() as progress:
        task = progress.add_task("settling", total=messages)

        def count(settled: Settled) -> None:
            nonlocal done, ended_at
            done += sum(settled.counts.values())
            progress.update(task, completed=done)
            if done >= messages:
                ended_at = time.monotonic()
                stop.set()

        run_service(settings, {Role.CONSUME}, stop, on_settled=count, load=lambda _: scorer)
    return ended_at - (scorer.first_asked_at or ended_at)


if __name__ == "__main__":
    typer.run(main)
