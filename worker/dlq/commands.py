"""The commands ``gasp-worker dlq …``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say
from schemas.reject_reason import RejectReason
from worker.dlq.letter_filter import LetterFilter
from worker.errors import InputFileError
from worker.terminal.database import opened_settings
from worker.terminal.times import time_option

if TYPE_CHECKING:
    # These import kafka, which the other commands can spare.
    from worker.broker.scan import TopicScan
    from worker.dlq.letters import Letter, Stranger
    from worker.dlq.originals import Obstacle, Originals
    from worker.dlq.replay import Homes, Replayer, Tally
    from worker.settings.settings import Settings

MAX_REPLAYS = 3
MAX_CHARS = 4000
CLIENT_ID = "gasp-dlq"

dlq = typer.Typer(no_args_is_help=True, help="Dead letters: list them, look into one, send them again.")


def _place(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    if not (partition.isdecimal() and offset.isdecimal()):
        raise typer.BadParameter("a partition and an offset are wanted, such as 0:17", param_hint="PLACE")
    return int(partition), int(offset)


Reasons = Annotated[
    list[RejectReason] | None,
    typer.Option("--reason", help="Only letters with this reason; may be given several times."),
]
Since = Annotated[
    datetime | None,
    typer.Option(parser=time_option, metavar="TIME", help="Rejected at this time or later; UTC if no zone."),
]
Until = Annotated[
    datetime | None, typer.Option(parser=time_option, metavar="TIME", help="Rejected before this time; UTC if no zone.")
]
Topic = Annotated[str | None, typer.Option(help="The topic of the original message.")]
Partition = Annotated[int | None, typer.Option(min=0, help="The partition of the original message.")]
Offset = Annotated[int | None, typer.Option(min=0, help="The offset of the original message.")]
Detail = Annotated[str | None, typer.Option(help="The detail contains this, in upper or lower case.")]


@dlq.command("list")
def list_letters(
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    topic: Topic = None,
    partition: Partition = None,
    offset: Offset = None,
    detail: Detail = None,
    limit: Annotated[int | None, typer.Option(min=1, help="List the first letters only.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Only count by reason and detail.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List the dead letters, or count them by reason and detail (--summary).

    If nothing is selected, records of the topic that are no dead letters are listed as well.
    """
    selection = LetterFilter(frozenset(reason or ()), since, until, topic, partition, offset, detail)
    settings = opened_settings()
    found = islice(_selected(_open(settings, settings.dead_letter_topic), selection), limit)
    lines = _summary(found, as_json=json) if summary else _rows(found, as_json=json)
    empty = True
    for line in lines:
        say(line)
        empty = False
    if empty and not json:
        say(f"no such dead letters in {settings.dead_letter_topic}")


@dlq.command()
def show(
    place: Annotated[str, typer.Argument(help="PARTITION:OFFSET in the dead-letter topic, as list shows it.")],
    *,
    max_chars: Annotated[int, typer.Option(min=1, help="Cut the value after this number of characters.")] = MAX_CHARS,
    save: Annotated[Path | None, typer.Option(help="Also write the value, byte for byte, to this file.")] = None,
) -> None:
    """Show one dead letter: the facts, and the message's headers, key and value.

    A value that is not in the letter is fetched from the original topic, if that is GASP_TOPIC and still has it.
    """
    partition, offset = _place(place)
    from worker.dlq.letters import Stranger, read_letter
    from worker.dlq.page import letter_line, letter_page

    settings = opened_settings()
    record = _open(settings, settings.dead_letter_topic).find(partition, offset)
    if record is None:
        raise typer.BadParameter(f"there is none in {settings.dead_letter_topic}", param_hint="PLACE")
    letter = read_letter(record)
    if isinstance(letter, Stranger):
        say(letter_line(letter))
        return
    value = _originals(settings, None).value(letter)
    for line in letter_page(letter, value, max_chars):
        say(line)
    if save is not None:
        _save(save, value)


@dlq.command()
def replay(
    *,
    reason: Reasons = None,
    since: Since = None,
    until: Until = None,
    topic: Topic = None,
    partition: Partition = None,
    offset: Offset = None,
    detail: Detail = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Send this number at most.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Send all of them; needed if nothing is selected.")] = False,
    max_replays: Annotated[
        int, typer.Option(min=1, max=1000, help="Leave letters that were replayed this often already.")
    ] = MAX_REPLAYS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; list what would be sent.")] = False,
) -> None:
    """Send the messages of dead letters to GASP_TOPIC again, as they were, when the cause is repaired.

    Messages from GASP_REVIEW_LABELS_TOPIC go back there. Headers gasp-replay-… say how often this was done, where the
    message lay at first and why it was rejected. A message that fails again becomes a dead letter again; only the
    newest letter of a message is sent. Replaying too much does no harm: what was scored meanwhile is skipped as a
    duplicate. Ends with status 1 if a letter could not be sent.
    """
    selection = LetterFilter(frozenset(reason or ()), since, until, topic, partition, offset, detail)
    if selection.means_all and not everything:
        raise typer.BadParameter("select letters, for example with --reason, or say --all", param_hint="--all")
    from worker.dlq.originals import Obstacle
    from worker.dlq.replay import Tally

    settings = opened_settings()
    tally = Tally()
    try:
        _replay(settings, selection, tally, limit=limit, max_replays=max_replays, dry_run=dry_run)
    except BaseException:
        # After a fault or Ctrl-C, too: what was sent is sent.
        if tally.sent or tally.unconfirmed:
            _tell(tally, settings, dry_run=dry_run)
        raise
    _tell(tally, settings, dry_run=dry_run)
    raise typer.Exit(1 if tally.left.keys() - {Obstacle.SUPERSEDED} else 0)


def _tell(tally: Tally, settings: Settings, *, dry_run: bool) -> None:
    from worker.dlq.page import tally_lines

    for line in tally_lines(tally, settings.first_topic, dry_run=dry_run):
        say(line)


def _replay(
    settings: Settings, selection: LetterFilter, tally: Tally, *, limit: int | None, max_replays: int, dry_run: bool
) -> None:
    from worker.dlq.letters import only_letters
    from worker.dlq.progress import with_bar
    from worker.dlq.replay import Replayer, newest_letters, replay_letters

    scan = _open(settings, settings.dead_letter_topic)
    with closing(with_bar("looking through", scan)) as items:
        newest = newest_letters(only_letters(items))
    replayer = Replayer(_originals(settings, selection.topic), newest, settings.max_message_bytes, max_replays)
    with closing(with_bar("replaying", scan, shown=not dry_run)) as items:
        letters = (letter for letter in only_letters(items) if selection.matches(letter.facts))
        if dry_run:
            homes = _homes(settings)
            replay_letters(letters, replayer.prepare, lambda letter, _: _rehearse(letter, homes, tally), tally, limit)
        else:
            _send(settings, letters, replayer, tally, limit)


def _send(settings: Settings, letters: Iterator[Letter], replayer: Replayer, tally: Tally, limit: int | None) -> None:
    from worker.broker.sink import RecordSink
    from worker.dlq.replay import Sender, replay_letters
    from worker.ingest.topics import MESSAGE_FRAME_BYTES
    from worker.settings.security import kafka_security

    opened = RecordSink(
        settings.kafka_bootstrap_servers,
        client_id=CLIENT_ID,
        max_request_bytes=settings.max_message_bytes + MESSAGE_FRAME_BYTES,
        security=kafka_security(settings),
    )
    with opened as sink, Sender(sink, _homes(settings), tally) as sender:
        replay_letters(letters, replayer.prepare, sender.send, tally, limit)


def _rehearse(letter: Letter, homes: Homes, tally: Tally) -> None:
    from worker.dlq.page import letter_line

    say(letter_line(letter))
    tally.count(homes.of(letter), homes)


def _homes(settings: Settings) -> Homes:
    from worker.dlq.replay import Homes

    return Homes(settings.first_topic, frozenset(settings.topics[1:]) | _label_topics(settings))


def _label_topics(settings: Settings) -> frozenset[str]:
    return frozenset({settings.review_labels_topic} - {""})


def _rows(found: Iterator[Letter | Stranger], *, as_json: bool) -> Iterator[str]:
    from worker.dlq.page import LETTER_HEAD, letter_json, letter_line

    for number, one in enumerate(found):
        if number == 0 and not as_json:
            yield LETTER_HEAD
        yield letter_json(one) if as_json else letter_line(one)


def _summary(found: Iterator[Letter | Stranger], *, as_json: bool) -> Iterator[str]:
    from worker.dlq.page import summary_json, summary_lines
    from worker.dlq.summary import summarize

    kinds, strangers = summarize(found)
    return summary_json(kinds, strangers) if as_json else summary_lines(kinds, strangers)


def _selected(scan: TopicScan, selection: LetterFilter) -> Iterator[Letter | Stranger]:
    from worker.dlq.letters import Letter, read_letters

    for found in read_letters(scan):
        if selection.matches(found.facts) if isinstance(found, Letter) else selection.means_all:
            yield found


def _originals(settings: Settings, named_topic: str | None) -> Originals:
    from worker.dlq.originals import Originals

    topics = {*settings.topics, named_topic or settings.first_topic} | _label_topics(settings)
    return Originals(lambda topic: _open(settings, topic), topics)


def _open(settings: Settings, topic: str) -> TopicScan:
    from worker.broker.scan import TopicScan
    from worker.settings.security import kafka_security

    security = kafka_security(settings)
    return TopicScan(settings.kafka_bootstrap_servers, topic, client_id=CLIENT_ID, security=security)


def _save(path: Path, value: bytes | Obstacle | None) -> None:
    if not isinstance(value, bytes):
        say(f"nothing is saved to {path}", err=True)
        raise typer.Exit(1)
    try:
        path.write_bytes(value)
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error
    say(f"saved {len(value)} bytes to {path}")
