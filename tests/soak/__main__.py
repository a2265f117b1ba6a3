"""Nothing is lost and nothing doubled, whatever ends: `make soak`. Writes build/bench/soak.json.

Worker processes with a scorer that needs no model settle a backlog on Apache Kafka and PostgreSQL, behind PgBouncer.
A seeded schedule kills, stops and restarts them and both servers, adds partitions, lets the database stand still and
puts a backup of it back. Half of the messages come in transactions, and one worker's clock is ahead. Then every record,
row, dead letter and step of an offset is compared with what it must be.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tests.apache_kafka import KafkaCannotRun
from tests.pgbouncer import PgBouncerCannotRun
from tests.soak import report
from tests.soak.run import Plan, Soak
from tests.soak.sabotage import Sabotage
from tests.soak.schedule import Wanted
from worker.runtime.logs import configure_logs


def main(
    *,
    messages: Annotated[int, typer.Option(min=1, help="Messages to send at least; more while blows fall.")] = 20_000,
    minutes: Annotated[float, typer.Option(help="Give up after so long.")] = 60.0,
    partitions: Annotated[int, typer.Option(min=1)] = 12,
    workers: Annotated[str, typer.Option(help="Sizes of the crew, one after another.")] = "1,3,2,4",
    kills: Annotated[int, typer.Option(min=0, help="SIGKILL, at a random moment and at six exact points in turn.")] = 7,
    terms: Annotated[int, typer.Option(min=0, help="SIGTERM; one in four twice.")] = 8,
    stops: Annotated[int, typer.Option(min=0, help="SIGSTOP until the partitions are another's, then SIGCONT.")] = 2,
    broker_restarts: Annotated[int, typer.Option(min=0)] = 2,
    database_restarts: Annotated[int, typer.Option(min=0)] = 2,
    growths: Annotated[int, typer.Option(min=0, help="Partitions that are added.")] = 1,
    freezes: Annotated[int, typer.Option(min=0, help="The database stands still; a SIGTERM in every other.")] = 2,
    restore: Annotated[bool, typer.Option(help="Put a backup of the database back.")] = True,
    pgbouncer: Annotated[bool, typer.Option(help="Workers reach the database through PgBouncer.")] = True,
    seed: Annotated[int | None, typer.Option(help="Of the messages and the schedule.")] = None,
    delay_s: Annotated[float, typer.Option(min=0, help="Model time of a batch.")] = 0.1,
    batch_messages: Annotated[int, typer.Option(min=1)] = 16,
    backlog: Annotated[int, typer.Option(min=1, help="Messages that are kept waiting.")] = 2_000,
    session_timeout_s: Annotated[float, typer.Option(min=1)] = 6.0,
    sabotage: Annotated[Sabotage, typer.Option("--break", help="Break the workers on purpose.")] = Sabotage.NONE,
    output: Annotated[Path, typer.Option(help="Where the figures go.")] = report.OUTPUT,
) -> None:
    """Soak, and report. Exit status: 0 if all is well, 1 if not, 3 if Kafka or PgBouncer cannot run here."""
    configure_logs("error")
    wanted = Wanted(kills, terms, stops, broker_restarts, database_restarts, _sizes(workers), growths, freezes, restore)
    plan = Plan(
        messages=messages,
        partitions=partitions,
        wanted=wanted,
        seed=random.randrange(1_000_000) if seed is None else seed,
        minutes=minutes,
        delay_s=delay_s,
        batch_messages=batch_messages,
        backlog=backlog,
        session_timeout_s=session_timeout_s,
        sabotage=sabotage,
        pooled=pgbouncer,
    )
    # Not below the checkout: PostgreSQL's user must be let through to its files.
    directory = Path(tempfile.mkdtemp(prefix="gasp-soak-"))
    soak = Soak(plan, directory)
    typer.echo(f"seed {plan.seed}: {' '.join(map(str, soak.steps)) or 'no blows'}")
    try:
        soak.run()
    except KafkaCannotRun as error:
        typer.echo(f"Apache Kafka cannot run here: {error}", err=True)
        raise typer.Exit(3) from None
    except PgBouncerCannotRun as error:
        typer.echo(f"PgBouncer cannot run here: {error}; --no-pgbouncer goes without it", err=True)
        raise typer.Exit(3) from None
    report.write(soak.figures, soak.findings.wrong, output)
    report.show(soak.figures, soak.findings.wrong, [directory, directory / "events.jsonl"])
    if soak.findings.wrong:
        raise typer.Exit(1)
    shutil.rmtree(directory, ignore_errors=True)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in text.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise typer.BadParameter("numbers of at least 1, with commas between", param_hint="--workers")
    return sizes


if __name__ == "__main__":
    typer.run(main)
