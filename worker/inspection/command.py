"""The command ``gasp-worker inspect``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say
from worker.terminal.files import MESSAGES, require_folder_of, require_input

if TYPE_CHECKING:
    # These take long to import, and the help can spare them.
    from worker.settings.settings import ReadingSettings
    from worker.terminal.inputs import Message

TOPIC_MESSAGES = 100


def inspect(
    path: Annotated[Path | None, typer.Argument(metavar="FILE", help=MESSAGES)] = None,
    *,
    topic: Annotated[str | None, typer.Option(help="Read the newest messages of this topic instead.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help=f"Read so many messages; of a topic {TOPIC_MESSAGES} if nothing is said."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Also write one JSON object per exchange to this file.")
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Print only the counts by format and reason.")] = False,
) -> None:
    """Show what would be read from messages. Needs no model and no database; nothing is written or committed."""
    if (path is None) == (topic is None):
        raise typer.BadParameter("a file or folder is wanted, or --topic", param_hint="FILE")
    if path is not None:
        require_input(path)
    if json is not None:
        require_folder_of(json)
    with ExitStack() as stack:
        settings, messages = _of_file(path, stack) if topic is None else _of_topic(topic, limit or TOPIC_MESSAGES)
        out = None if json is None else stack.enter_context(json.open("wb"))
        from worker.inspection.inspection import Inspection, Summary
        from worker.inspection.page import inspected_json, inspected_text, summary_text
        from worker.schema_registry.schemas import opened_schemas

        schemas = stack.enter_context(opened_schemas(settings))
        inspection, counts = Inspection(settings, schemas, topic), Summary()
        for found in inspection.read(islice(messages, limit)):
            counts.count(found)
            if out is not None:
                out.write(inspected_json(found))
            if not summary:
                say(inspected_text(found))
    say(summary_text(counts, inspection.messages))


def _of_file(path: Path | None, stack: ExitStack) -> tuple[ReadingSettings, Iterator[Message]]:
    from worker.settings.settings import read_reading_settings
    from worker.terminal.inputs import input_bytes, read_messages
    from worker.terminal.progress import bytes_progress

    if path is None:
        raise ValueError("neither a file nor a topic")
    settings = read_reading_settings()
    advance = stack.enter_context(bytes_progress("reading", input_bytes(path)))
    return settings, read_messages(path, advance)


def _of_topic(topic: str, limit: int) -> tuple[ReadingSettings, Iterator[Message]]:
    from worker.inspection.topic import newest_messages
    from worker.settings.settings import read_broker_settings

    settings = read_broker_settings()
    return settings, newest_messages(settings, topic, limit)
