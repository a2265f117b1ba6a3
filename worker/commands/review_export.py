"""The commands ``gasp-worker review export`` and ``gasp-worker review label-studio-config``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from gasp_core.terminal import say
from worker.review.formats import ExportFormat
from worker.terminal.database import opened_store
from worker.terminal.files import require_folder_of
from worker.terminal.times import time_option

TO_BE_READ = ("open", "disputed")
STATES = (*TO_BE_READ, "labelled")


def export(
    file: Annotated[Path, typer.Argument(help="A new file.")],
    *,
    file_format: Annotated[ExportFormat, typer.Option("--format", help="The format of the file.")],
    app: Annotated[str | None, typer.Option(help="Tasks of this app only.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(parser=time_option, metavar="TIME", help="Created at this time or later; UTC if no zone."),
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="open, disputed or labelled; default: those that wait for a reviewer.")
    ] = None,
) -> None:
    """Write review tasks to a file: for Label Studio, for a spreadsheet (csv), or as messages of the topic (jsonl).

    In the spreadsheet, fill in label (supported, unsupported, partly, not_a_claim, cant_tell), reviewer and note. A
    text that a spreadsheet would take for a formula has an apostrophe in front.
    """
    if state is not None and state not in STATES:
        raise typer.BadParameter(f"it is one of {', '.join(STATES)}", param_hint="--state")
    require_folder_of(file)
    from worker.review.export import export_tasks
    from worker.store.task_contents import TaskFilter
    from worker.terminal.progress import count_progress

    wanted = TaskFilter(app, since, TO_BE_READ if state is None else (state,))
    with (
        opened_store("review-export") as store,
        count_progress("exporting", store.review_tasks.count(wanted)) as advance,
    ):
        written = export_tasks(store.review_tasks.all(wanted), file_format, file, advance)
    say(f"wrote {written} tasks to {file}")


def label_studio_config() -> None:
    """Print the labelling configuration for Label Studio: Settings, Labeling Interface, Code."""
    from worker.review.label_studio import CONFIG

    say(CONFIG, nl=False)
