"""The command ``gasp-worker recalibrate``."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

from gasp_core.terminal import say, visible
from worker.terminal.database import opened_store


def recalibrate(
    *,
    app: Annotated[
        str | None, typer.Option(help="This app only; without it, every app with labels, and the version for all apps.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the outcome would be.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Learn corrections and thresholds from the labels, now instead of at 05:10 UTC, and put what is better in force.

    Says for each app and scorer the outcome and why, and what a new version changes of last week's sentences.
    """
    from worker.commands.threshold_page import as_json, finding_facts, finding_lines
    from worker.jobs.recalibration import COMMAND, Recalibrator
    from worker.rules.calibration.recalibrate import CalibrationOutcome

    found = False
    with opened_store("recalibrate") as store:
        for finding in Recalibrator.of(store).recalibrations(
            threading.Event(), trigger=COMMAND, app=app, dry_run=dry_run
        ):
            found = True
            new = finding.result.outcome is CalibrationOutcome.NEW
            wanted = (finding.app, finding.scorer_id, finding.result.flag_below, finding.correction)
            previewed = store.previews.flagging_below(*wanted) if new else None
            for line in [as_json(finding_facts(finding, previewed))] if json else finding_lines(finding, previewed):
                say(line)
    if not found and not json:
        say(f"no labels{f' of {visible(app)}' if app else ''} for a scorer that judged anything in the last seven days")
