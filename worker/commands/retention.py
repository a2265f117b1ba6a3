"""The commands ``gasp-worker retention …``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say, visible
from worker.terminal.database import opened_store

if TYPE_CHECKING:
    from worker.store.retention_periods import Period

MAX_DAYS = 36_500

retention = typer.Typer(
    invoke_without_command=True,
    help="How long the data of each app is kept, and what is overdue. Without a period nothing is ever deleted.",
)

App = Annotated[str | None, typer.Option(help="This app only; without it, all apps that have no period of their own.")]


@retention.callback()
def show(context: typer.Context) -> None:
    """Show the periods, and what would be removed now."""
    if context.invoked_subcommand is not None:
        return
    from worker.jobs.retention import describe

    with opened_store("retention") as store:
        for period in store.retention_periods.all():
            say(_line(period))
        say(f"overdue: {describe(store.retention.overdue())}")


@retention.command("set")
def set_period(
    days: Annotated[int, typer.Argument(min=1, max=MAX_DAYS, help="Counted from when an exchange was stored.")],
    *,
    app: App = None,
) -> None:
    """Keep an app's data for this number of days. Removal begins with the next run, each day at 03:10 UTC."""
    _set(app, days)


@retention.command()
def keep(*, app: App = None) -> None:
    """Keep an app's data for ever. While an app is kept for ever no week is dropped, and nothing of the ledger."""
    _set(app, None)


@retention.command()
def reset(*, app: Annotated[str, typer.Option(help="The app.")]) -> None:
    """Let an app follow the period of the other apps again."""
    with opened_store("retention") as store:
        had_own = store.retention_periods.clear(app)
    say(f"{visible(app)}: {'as every other app' if had_own else 'has no period of its own'}")


@retention.command()
def run(
    *, dry_run: Annotated[bool, typer.Option("--dry-run", help="Remove nothing; count what would be removed.")] = False
) -> None:
    """Remove what is overdue now. Safe to end at any point, and to run beside the workers."""
    from worker.jobs.retention import Remover, describe, describe_removal

    with opened_store("retention") as store:
        if dry_run:
            say(f"would remove {describe(store.retention.overdue())}")
        else:
            say(f"removed {describe_removal(Remover.of(store).remove(threading.Event()))}")


def _set(app: str | None, keep_days: int | None) -> None:
    from worker.store.retention_periods import Period

    period = Period(app, keep_days)
    with opened_store("retention") as store:
        store.retention_periods.set(period)
    say(_line(period))


def _line(period: Period) -> str:
    kept = "for ever" if period.keep_days is None else f"{period.keep_days} days"
    return f"{visible(period.app or 'every other app')}: {kept}"
