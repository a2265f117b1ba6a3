"""The ``gasp-worker`` command."""

from __future__ import annotations

import os
import signal
from importlib.resources import files
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from gasp_core.errors import GaspError
from gasp_core.terminal import say
from migrations.errors import MigrationError
from worker.broker.errors import BrokerError
from worker.commands.fit_detector import fit_detector
from worker.commands.labels import labels
from worker.commands.recalibrate import recalibrate
from worker.commands.rejudge import rejudge
from worker.commands.rescore import rescore
from worker.commands.retention import retention
from worker.commands.review import review
from worker.commands.review_export import export, label_studio_config
from worker.commands.review_page import account, serve
from worker.commands.thresholds import thresholds
from worker.dlq.commands import dlq
from worker.embedded.errors import EmbeddedError
from worker.errors import Stopped, WorkerError
from worker.inspection.command import inspect
from worker.report.command import report
from worker.runtime.stop import Stop
from worker.settings.roles import ALL_ROLES, parse_roles, warn_of_old_names
from worker.store.errors import StoreError
from worker.terminal.database import opened_database_settings, opened_settings, opened_store
from worker.terminal.files import MESSAGES, require_folder_of, require_input

# What the help shows together; within each, in the order in which it is registered.
SET_UP = "Set up, and see that it is right"
RUN = "Run"
STORED = "What is stored"
REVIEW = "Reviews and thresholds"

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Audits logged RAG exchanges: from Kafka, through grounding scores, to Postgres. Settings: GASP_* variables.",
)


@app.command(rich_help_panel=SET_UP)
def demo(
    *,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help=f"Your own exchanges; default: samples. {MESSAGES}")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Audit the first messages only.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write one JSON object per sentence to this file.")] = None,
    psql: Annotated[bool, typer.Option("--psql", help="Open psql on the last demonstration's database.")] = False,
) -> None:
    """Run the whole audit on embedded parts and show the verdicts, read back from Postgres."""
    if source is not None:
        require_input(source)
    if json is not None:
        require_folder_of(json)
    from worker.commands.demo import open_psql, run_demo

    if psql:
        open_psql()
        return
    run_demo(source, limit=limit, json_output=json)


@app.command("settings", rich_help_panel=SET_UP)
def list_settings(
    *, markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/settings.md.")] = False
) -> None:
    """List all settings: variable, default, what it takes and what it is for."""
    from worker.commands import settings_page

    say(settings_page.markdown() if markdown else settings_page.text(), nl=not markdown)


@app.command(rich_help_panel=SET_UP)
def check() -> None:
    """Say what is wrong with settings, broker, database and model, one line each."""
    from worker.commands.check import check_setup
    from worker.runtime.logs import configure_logs

    configure_logs("error")
    wrong = 0
    for finding in check_setup({}):
        wrong += finding.problem is not None
        say(f"{'ok  ' if finding.problem is None else 'FAIL'} {finding.part}: {finding.problem or finding.fact}")
    raise typer.Exit(1 if wrong else 0)


@app.command(rich_help_panel=SET_UP)
def migrate(
    *,
    roles_sql: Annotated[
        bool, typer.Option("--roles-sql", help="Only print SQL for psql: roles that may do what they need, no more.")
    ] = False,
) -> None:
    """Bring the database to the revision that this version needs, while workers run. Several may run at once."""
    if roles_sql:
        say(files("migrations").joinpath("roles.sql").read_text("utf-8"), nl=False)
        return
    from migrations.revisions import head_revision
    from migrations.upgrade import upgrade

    settings = opened_database_settings()
    upgrade(settings.database, on_wait=lambda why: say(why, err=True))
    say(f"the database is at revision {head_revision()}")


@app.command(rich_help_panel=SET_UP)
def topics(
    *,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the interactions topic.")] = 12,
    replication: Annotated[int, typer.Option(min=1, help="Replication factor of all topics.")] = 1,
) -> None:
    """Create the topics that do not exist yet."""
    from worker.broker.admin import BrokerAdmin
    from worker.ingest.topics import wanted_topics
    from worker.settings.security import kafka_security

    settings = opened_settings()
    with BrokerAdmin(settings.kafka_bootstrap_servers, security=kafka_security(settings)) as admin:
        done = admin.create_topics(wanted_topics(settings, partitions=partitions, replication=replication))
    for name in done.created:
        say(f"{name}: created")
    for name in done.existing:
        say(f"{name}: exists")


@app.command(rich_help_panel=RUN)
def run(
    *,
    roles: Annotated[
        str, typer.Option(help="Any of consume, attribute and maintain, with commas between.")
    ] = ALL_ROLES,
) -> None:
    """Run the worker until it is told to stop (SIGTERM or Ctrl-C)."""
    try:
        chosen = parse_roles(roles)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--roles") from error
    settings = opened_settings()
    warn_of_old_names(roles)
    from worker.service import run_service  # imports torch, which the other commands can spare

    if not run_service(settings, chosen, stop_on_signals()):
        # A thread still runs the model, and the interpreter would wait for it.
        os._exit(0)


@app.command(rich_help_panel=RUN)
def status(*, json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Show positions and lag, outcomes, and the attribution jobs that wait."""
    from worker.commands.status import read_status
    from worker.commands.status_page import status_json, status_text

    settings = opened_settings()
    with opened_store("status", settings) as store:
        found = read_status(settings, store)
    say(status_json(found) if json else status_text(found))


@app.command(rich_help_panel=RUN)
def replay(
    path: Annotated[Path, typer.Argument(metavar="FILE", help=MESSAGES)],
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Send the first messages only.")] = None,
) -> None:
    """Send the messages of a file or folder into the interactions topic."""
    require_input(path)
    from worker.broker.sink import RecordSink
    from worker.commands.replay import replay_messages
    from worker.settings.security import kafka_security
    from worker.terminal.inputs import input_bytes, read_messages
    from worker.terminal.progress import bytes_progress

    settings = opened_settings()
    with (
        RecordSink(
            settings.kafka_bootstrap_servers, client_id="gasp-replay", security=kafka_security(settings)
        ) as sink,
        bytes_progress("replaying", input_bytes(path)) as advance,
    ):
        sent = replay_messages(islice(read_messages(path, advance), limit), sink, settings.first_topic)
    say(f"sent {sent} messages to {settings.first_topic}")


app.command(rich_help_panel=SET_UP)(inspect)
app.add_typer(dlq, name="dlq", rich_help_panel=RUN)
app.command(rich_help_panel=STORED)(report)
app.command(rich_help_panel=STORED)(rescore)
app.command(rich_help_panel=STORED)(rejudge)
app.add_typer(retention, name="retention", rich_help_panel=STORED)
app.add_typer(review, name="review", rich_help_panel=REVIEW)
review.command()(export)
review.command()(label_studio_config)
review.command()(serve)
review.command()(account)
app.add_typer(labels, name="labels", rich_help_panel=REVIEW)
app.command(rich_help_panel=REVIEW)(recalibrate)
app.command(rich_help_panel=REVIEW)(fit_detector)
app.add_typer(thresholds, name="thresholds", rich_help_panel=REVIEW)


def stop_on_signals() -> Stop:
    """A stop that SIGTERM and Ctrl-C ask for. A second signal ends the process at once."""
    stop = Stop()

    def ask(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return stop


def main() -> None:
    """Run the command; a fault that we know ends it with what to do about it and status 2."""
    try:
        app()
    except (BrokerError, EmbeddedError, GaspError, MigrationError, StoreError, WorkerError) as error:
        say(f"gasp-worker: {error}", err=True)
        raise SystemExit(2) from None
    except Stopped:
        raise SystemExit(0) from None
