"""The command ``gasp-worker report``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from gasp_core.terminal import say
from worker.errors import InputFileError
from worker.terminal.database import opened_store
from worker.terminal.files import require_folder_of
from worker.terminal.times import time_option

MAX_DAYS = 3_650


def parse_since(text: str) -> datetime:
    """So many days ago, as in ``30d``, or a time in ISO 8601. Raises typer.BadParameter."""
    days = re.fullmatch(r"([1-9]\d{0,3})d", text.strip())
    since = time_option(text) if days is None else datetime.now(UTC) - timedelta(days=int(days[1]))
    if not datetime.now(UTC) - timedelta(days=MAX_DAYS) <= since < datetime.now(UTC):
        raise typer.BadParameter("it must lie in the past, and not more than ten years ago")
    return since


def report(
    *,
    app: Annotated[str, typer.Option(help="The app.")],
    since: Annotated[
        datetime, typer.Option(parser=parse_since, metavar="DAYS|TIME", help="Such as 30d or 2026-11-01; UTC.")
    ],
    file: Annotated[Path, typer.Option("--html", help="Where to write the page; a file there is replaced.")],
    scorer: Annotated[
        str | None, typer.Option(help="Its label or id; without it, the one that gave the last verdict.")
    ] = None,
) -> None:
    """Write one page on an app: scores, flags, how far they can be trusted, the review queue and the thresholds.

    The page holds texts of answers and questions, and is to be kept like them.
    """
    require_folder_of(file)
    from worker.report.contents import gather
    from worker.report.page import html  # imports matplotlib, which the other commands can spare

    with opened_store("report") as store:
        page = html(gather(store, app, since, scorer))
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputFileError(f"{file}: {error.strerror}") from None
    say(f"wrote {file}")
