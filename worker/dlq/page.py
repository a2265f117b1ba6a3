"""Dead letters as a person reads them, and as JSON. Nothing in them reaches a terminal as a control character."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from gasp_core.terminal import visible
from worker.broker.sink import Place
from worker.dlq.letters import Letter, Stranger
from worker.dlq.originals import Obstacle
from worker.dlq.replay import Tally
from worker.dlq.summary import Count, LetterKind

LETTER_HEAD = f"{'place':>9}  {'rejected':<20}  {'reason':<20}  {'bytes':>9}  {'value':<9}  replays  original: detail"
SUMMARY_HEAD = f"{'letters':>9}  {'first':<20}  {'last':<20}  {'example':>9}  reason: detail"


def letter_line(found: Letter | Stranger) -> str:
    """One line under LETTER_HEAD."""
    if isinstance(found, Stranger):
        return f"{_stretch(found):>9}  no dead letter: {visible(found.problem)}"
    facts = found.facts
    return (
        f"{_short(found.place):>9}  {_time(facts.rejected_at):<20}  {facts.reason:<20}  {facts.size_bytes:>9}  "
        f"{_value_state(found):<9}  {found.replays:>7}  {_named(original_place(found))}: {visible(facts.detail)}"
    )


def letter_json(found: Letter | Stranger) -> str:
    """One line: the facts as the contract names them, the place, and the last replay or null."""
    if isinstance(found, Stranger):
        return _json({"place": _stretch(found), "problem": found.problem})
    replay = found.replay.model_dump(mode="json") if found.replay else None
    return _json({"place": _short(found.place), **found.facts.model_dump(mode="json", by_alias=True), "replay": replay})


def summary_lines(kinds: Sequence[tuple[LetterKind, Count]], strangers: int) -> Iterator[str]:
    """A head, a line for each kind, and one for what is no dead letter; nothing if there is nothing."""
    if kinds:
        yield SUMMARY_HEAD
    for (reason, detail), count in kinds:
        times = f"{_time(count.first):<20}  {_time(count.last):<20}"
        yield f"{count.letters:>9}  {times}  {_short(count.example):>9}  {reason}: {visible(detail)}"
    if strangers:
        yield f"{strangers:>9}  no dead letters"


def summary_json(kinds: Sequence[tuple[LetterKind, Count]], strangers: int) -> Iterator[str]:
    """A line for each kind, and one for what is no dead letter."""
    for (reason, detail), count in kinds:
        times = {"first": count.first.isoformat(), "last": count.last.isoformat()}
        facts = {"reason": reason, "detail": detail, "letters": count.letters}
        yield _json({**facts, **times, "example": _short(count.example)})
    if strangers:
        yield _json({"problem": "no dead letters", "places": strangers})


def tally_lines(tally: Tally, topic: str, *, dry_run: bool) -> Iterator[str]:
    """What became of the letters of a replay, and why some were left."""
    usual = tally.sent - tally.elsewhere.total()
    for name, count in ((topic, usual), *sorted(tally.elsewhere.items())):
        if count or name == topic:
            yield f"{'would send' if dry_run else 'sent'} {count} to {visible(name)}"
    if tally.unconfirmed:
        yield f"sent and not confirmed {tally.unconfirmed}: they may have arrived"
    for obstacle, count in sorted(tally.left.items()):
        yield f"left {count}: {obstacle} (such as {_short(tally.examples[obstacle])})"


def letter_page(letter: Letter, value: bytes | Obstacle | None, max_chars: int) -> Iterator[str]:
    """All of one letter, with the message's value or why it cannot be had."""
    facts = letter.facts
    yield f"reason      {facts.reason}: {visible(facts.detail)}"
    yield f"rejected    {facts.rejected_at.isoformat()}"
    yield f"original    {_named(original_place(letter))}, {facts.size_bytes} bytes"
    if letter.replay:
        last = letter.replay.replayed_at.isoformat()
        yield f"replayed    {_times(letter.replays)}, last at {last}; it was dead for {letter.replay.reason} then"
        yield f"at first    {_named(letter.first_place)}"
    yield f"key         {_text(letter.record.key)}"
    yield from (f"header      {visible(name)}: {_text(content)}" for name, content in letter.headers)
    yield from _value_lines(value, max_chars)


def original_place(letter: Letter) -> Place:
    """Where the message lay when it was rejected."""
    return Place(letter.facts.topic, letter.facts.partition, letter.facts.offset)


def _value_lines(value: bytes | Obstacle | None, max_chars: int) -> Iterator[str]:
    if not isinstance(value, bytes):
        yield f"value       {value or 'none'}"
        return
    yield "value"
    text = value.decode(errors="replace")
    yield from (f"  {line}" for line in visible(text[:max_chars], keep="\n\t").split("\n"))
    if len(text) > max_chars:
        yield f"... and {len(text) - max_chars} more characters; --max-chars shows them, --save keeps all"


def _value_state(letter: Letter) -> str:
    if letter.facts.value_attached:
        return "attached"
    return "reference" if letter.is_by_reference else "none"


def _text(content: bytes | None) -> str:
    return "none" if content is None else visible(content.decode(errors="replace"))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _short(place: Place) -> str:
    return f"{place.partition}:{place.offset}"


def _named(place: Place) -> str:
    return f"{visible(place.topic)}[{place.partition}]@{place.offset}"


def _stretch(stranger: Stranger) -> str:
    last = f"-{stranger.next_offset - 1}" if stranger.next_offset - stranger.offset > 1 else ""
    return f"{stranger.partition}:{stranger.offset}{last}"


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(facts: dict[str, object]) -> str:
    # Not orjson: it escapes no character that a terminal would act on, and refuses integers of more than 64 bits.
    return json.dumps(facts)
