"""The command ``gasp-worker rescore``: queues stored interactions for the verdict of another scorer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say
from worker.terminal.database import opened_store
from worker.terminal.times import time_option

if TYPE_CHECKING:
    from worker.store.rescore_jobs import History, Portion, RescoreJobs

# One transaction each, so that a million interactions hold nobody up.
PORTION_INTERACTIONS = 5_000


Since = Annotated[
    datetime | None,
    typer.Option(parser=time_option, metavar="TIME", help="Interactions of this time or later; UTC if no zone."),
]
Until = Annotated[
    datetime | None,
    typer.Option(parser=time_option, metavar="TIME", help="Interactions before this time; UTC if no zone."),
]


def rescore(
    *,
    scorer: Annotated[str, typer.Option(help="A scorer that a worker has run with: its label, or its id.")],
    since: Since = None,
    until: Until = None,
    app: Annotated[str | None, typer.Option(help="Interactions of this app only.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be queued.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Take back everything that waits for this scorer.")] = False,
) -> None:
    """Queue stored interactions for a scorer's verdict, or take them back (--cancel).

    Workers that run this scorer score them while they have nothing else to do. What is queued or has the verdict is
    left as it is, so the command can be repeated; what has failed is queued again. Verdicts of other scorers stay.
    """
    history = _history(since, until, app, dry_run=dry_run, cancel=cancel)
    from worker.store.scorers import choose_scorer

    with opened_store("rescore") as store:
        chosen = choose_scorer(store.scorers.known(), scorer)
        if history is None:
            say(f"took back {cancel_all(store.rescore_jobs, chosen.id)} interactions that waited for {chosen.label}")
            return
        portions = list(queue_all(store.rescore_jobs, chosen.id, history, dry_run=dry_run))
    queued, judged, before = (
        sum(portion.queued for portion in portions),
        sum(portion.judged for portion in portions),
        sum(portion.queued_before for portion in portions),
    )
    say(f"{'would queue' if dry_run else 'queued'} {queued} interactions for {chosen.label}")
    say(f"{judged} have its verdict already, {before} were queued before")


def queue_all(jobs: RescoreJobs, scorer_id: int, history: History, *, dry_run: bool) -> Iterator[Portion]:
    """Queue in portions, newest first. Raises StoreError; what was queued until then stays queued."""
    from worker.terminal.progress import running_count

    before = None
    with running_count("interactions looked at") as advance:
        while True:
            portion = jobs.queue(scorer_id, history, before, limit=PORTION_INTERACTIONS, only_count=dry_run)
            yield portion
            advance(portion.queued + portion.judged + portion.queued_before)
            before = portion.end
            if before is None:
                return


def cancel_all(jobs: RescoreJobs, scorer_id: int) -> int:
    """Take the scorer's waiting jobs back in portions; return how many it were."""
    from worker.terminal.progress import running_count

    cancelled = 0
    with running_count("interactions taken back") as advance:
        while taken := jobs.cancel(scorer_id, limit=PORTION_INTERACTIONS):
            cancelled += taken
            advance(taken)
    return cancelled


def _history(
    since: datetime | None, until: datetime | None, app: str | None, *, dry_run: bool, cancel: bool
) -> History | None:
    """What is to be queued, or None for a cancellation."""
    if cancel:
        if dry_run or since or until or app:
            raise typer.BadParameter("it takes everything back: give --scorer alone", param_hint="--cancel")
        return None
    if since is None:
        raise typer.BadParameter("say how far back to go", param_hint="--since")
    if until is not None and until <= since:
        raise typer.BadParameter("it must be later than --since", param_hint="--until")
    from worker.store.rescore_jobs import History

    return History(since, until, app)
