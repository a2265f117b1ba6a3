"""What an inspection found, as a person reads it and as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from gasp_core.terminal import visible
from worker.inspection.inspection import Inspected, ReadExchange, ReadNothing, Summary

MAX_CHARS = 100
MAX_SOURCES = 3
# Of passages and of reasons, so many are shown.
MAX_PASSAGES = 20
MAX_REASONS = 40


def inspected_text(found: Inspected) -> str:
    """A few lines."""
    return "\n".join(_exchange_lines(found) if isinstance(found, ReadExchange) else _nothing_lines(found))


def inspected_json(found: Inspected) -> bytes:
    """One line."""
    return orjson.dumps(_exchange_row(found) if isinstance(found, ReadExchange) else _nothing_row(found)) + b"\n"


def summary_text(summary: Summary, messages: int) -> str:
    """The counts."""
    return "\n".join(_summary_lines(summary, messages))


def _exchange_lines(found: ReadExchange) -> Iterator[str]:
    logged = found.interaction
    time = "no time" if logged.occurred_at is None else f"{logged.occurred_at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"{_places(found.sources)}  {found.format}  app {_cut(logged.app)}  {time}"
    yield f"  question  {_cut(logged.question) or '-'}"
    for passage in logged.passages[:MAX_PASSAGES]:
        score = "" if passage.score is None else f" ({passage.score:.3g})"
        yield f"  passage   {_cut(passage.id)}{score}  {_cut(passage.text) or '-'}"
    if len(logged.passages) > MAX_PASSAGES:
        yield f"  passage   … and {len(logged.passages) - MAX_PASSAGES} more"
    yield f"  answer    {_cut(logged.answer) or '-'}"
    if found.missing:
        yield f"  missing   {', '.join(found.missing)}"


def _nothing_lines(found: ReadNothing) -> Iterator[str]:
    yield f"{_places(found.sources)}  {found.outcome}: {found.reason}"
    if found.detail:
        yield f"  {visible(found.detail)}"


def _summary_lines(summary: Summary, messages: int) -> Iterator[str]:
    yield f"{messages} messages, {summary.exchanges.total()} exchanges"
    for name, count in summary.exchanges.most_common():
        without = ", ".join(f"{one} without {what}" for (of, what), one in summary.missing.most_common() if of == name)
        yield f"  {count:>8}  {name}{f'  ({without})' if without else ''}"
    if summary.nothing:
        yield f"{summary.nothing.total()} without an exchange"
    for (outcome, reason, detail), count in summary.nothing.most_common(MAX_REASONS):
        yield f"  {count:>8}  {outcome}: {reason}{f' ({visible(detail)})' if detail else ''}"
    if len(summary.nothing) > MAX_REASONS:
        yield f"            … and {len(summary.nothing) - MAX_REASONS} more kinds"


def _exchange_row(found: ReadExchange) -> dict[str, object]:
    logged = found.interaction
    return {
        "question": logged.question,
        "answer": logged.answer,
        "passages": [{"id": one.id, "text": one.text, "score": one.score} for one in logged.passages],
        "app": logged.app,
        "format": found.format,
        "sources": found.sources,
        "interaction_id": logged.interaction_id,
        "occurred_at": logged.occurred_at,
        "generator_model": logged.generator_model,
        "metadata": logged.metadata,
        "missing": found.missing,
    }


def _nothing_row(found: ReadNothing) -> dict[str, object]:
    return {"outcome": found.outcome, "reason": found.reason, "detail": found.detail, "sources": found.sources}


def _places(sources: tuple[str, ...]) -> str:
    shown = ", ".join(visible(place) for place in sources[:MAX_SOURCES])
    return shown if len(sources) <= MAX_SOURCES else f"{shown} and {len(sources) - MAX_SOURCES} more"


def _cut(text: str) -> str:
    line = visible(" ".join(text[: 2 * MAX_CHARS].split()))
    return line if len(line) <= MAX_CHARS and len(text) <= 2 * MAX_CHARS else f"{line[: MAX_CHARS - 2]} …"
