"""The command ``gasp-worker rejudge``: stored answers, judged anew by the version in force, without the model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say, visible
from worker.terminal.apps import require_known_app
from worker.terminal.database import opened_store
from worker.terminal.times import time_option

if TYPE_CHECKING:
    from worker.store.rejudging import Rejudged, Rejudging

# One transaction each, so that a million answers hold nobody up.
STEP_ANSWERS = 500


def rejudge(
    *,
    since: Annotated[
        datetime,
        typer.Option(parser=time_option, metavar="TIME", help="Answers of this time or later; UTC if no zone."),
    ],
    app: Annotated[str | None, typer.Option(help="Answers of this app only; without it, of every app.")] = None,
    scorer: Annotated[
        str | None, typer.Option(help="A scorer's label or id; without it, those that judged in the last seven days.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Judge stored answers anew by the thresholds in force now, from what is stored of their sentences.

    Needs no model, and the login of the database's owner: a worker's may not change a verdict. Flags, scores with what
    reviewers taught and probabilities change, and verdicts name the version in force. Review tasks, labels and what was
    sent elsewhere stay. It may be broken off and repeated.
    """
    from worker.store.scorers import choose_scorer

    with opened_store("rejudge") as store:
        if app is not None:
            require_known_app(store.interactions, app)
        scorers = [choose_scorer(store.scorers.known(), scorer).id] if scorer else store.scorers.at_work()
        for scorer_id in scorers:
            for name in store.interactions.apps() if app is None else [app]:
                steps = list(rejudge_all(store.rejudging, name, scorer_id, since, dry_run=dry_run))
                facts = _facts(name, scorer_id, steps)
                say(_as_json(facts) if json else _line(facts, dry_run=dry_run))


def rejudge_all(
    rejudging: Rejudging, app: str, scorer_id: int, since: datetime, *, dry_run: bool = False
) -> Iterator[Rejudged]:
    """Go through the app's answers, newest first. Raises StoreError; what was judged anew until then stays so."""
    from worker.terminal.progress import running_count

    before = None
    with running_count("answers judged anew") as advance:
        while True:
            step = rejudging.step(app, scorer_id, since, before, limit=STEP_ANSWERS, only_count=dry_run)
            yield step
            advance(step.answers)
            before = step.end
            if before is None:
                return


def _facts(app: str, scorer_id: int, steps: list[Rejudged]) -> dict[str, object]:
    return {
        "app": app,
        "scorer_id": scorer_id,
        "answers": sum(step.answers for step in steps),
        "newly_flagged": sum(step.newly_flagged for step in steps),
        "no_longer_flagged": sum(step.no_longer_flagged for step in steps),
        "without_terms": sum(step.without_terms for step in steps),
    }


def _as_json(facts: dict[str, object]) -> str:
    from worker.commands.threshold_page import as_json

    return as_json(facts)


def _line(facts: dict[str, object], *, dry_run: bool) -> str:
    flags = f"{facts['newly_flagged']} sentences newly flagged, {facts['no_longer_flagged']} no longer"
    done = f"{facts['answers']} answers {'would be ' if dry_run else ''}judged anew, {flags}"
    left = f"; {facts['without_terms']} stay as they are: an earlier release stored no terms of them"
    return f"{visible(str(facts['app']))}, scorer {facts['scorer_id']}: {done}{left if facts['without_terms'] else ''}"
