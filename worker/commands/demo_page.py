"""The verdicts of a demonstration, as a person reads them and as JSON lines. Everything comes from Postgres."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from gasp_core.terminal import visible
from worker.store.ledger import Ledger
from worker.store.sentences import SentenceRow, Sentences

_BLANKS = re.compile(r"\s+")
FURTHER = """[bold]Look further[/]  gasp-worker demo --psql (in a checkout, make psql) opens this database; for example
  SELECT app, interaction_id, text, score, gap, supporting_passage_id FROM v_flagged_sentences ORDER BY score;
  SELECT * FROM v_interactions ORDER BY lowest_score;   SELECT * FROM v_dead_letters;   SELECT * FROM v_ingest_lag;
[bold]Your own data[/]  gasp-worker demo --input exchanges.jsonl (make demo INPUT=exchanges.jsonl)"""


def print_verdicts(sentences: Sentences, ledger: Ledger, *, elapsed_s: float) -> None:
    """Per exchange its sentences with score, flag and supporting passage; then the totals."""
    console = Console()
    totals: Counter[str] = Counter()
    for (app, interaction_id), rows in groupby(sentences.rows(), lambda row: (row.app, row.interaction_id)):
        found = list(rows)
        console.print(_exchange(app, interaction_id, found))
        totals["exchanges"] += 1
        totals["sentences"] += len(found)
        totals["flagged"] += sum(row.flagged is True for row in found)
        totals["unscored"] += sum(row.score is None for row in found)
    console.print(_totals(ledger, totals, elapsed_s))
    console.print(FURTHER, highlight=False, soft_wrap=True)


def write_json(sentences: Sentences, path: Path) -> None:
    """Write one JSON object per sentence."""
    with path.open("wb") as file:
        for row in sentences.rows():
            file.write(orjson.dumps(_record(row), option=orjson.OPT_APPEND_NEWLINE))


def _exchange(app: str, interaction_id: str, sentences: list[SentenceRow]) -> Table:
    table = Table(
        title=f"{escape(visible(app))} · {escape(visible(interaction_id))}",
        title_justify="left",
        title_style="bold",
        box=None,
    )
    table.add_column("", width=4)
    table.add_column("score", justify="right", width=6)
    table.add_column("sentence", ratio=1)
    table.add_column("rests on", width=28, overflow="fold")
    for row in sentences:
        style = "red" if row.flagged else ("dim" if row.score is None else "")
        table.add_row(
            "FLAG" if row.flagged else "",
            "" if row.score is None else f"{row.score:.2f}",
            _sentence(row),
            escape(visible(_support(row))),
            style=style,
        )
    return table


def _sentence(row: SentenceRow) -> Text:
    """The sentence; where it is flagged, with the words that are grounded least underlined."""
    if not row.flagged or row.worst_start is None or row.worst_end is None:
        return Text(_in_line(row.text).strip())
    start, end = row.worst_start - row.start_char, row.worst_end - row.start_char
    before, worst, behind = (_in_line(part) for part in (row.text[:start], row.text[start:end], row.text[end:]))
    return Text.assemble(before.lstrip(), (worst, "bold underline"), behind.rstrip())


def _in_line(text: str) -> str:
    return visible(_BLANKS.sub(" ", text))


def _support(row: SentenceRow) -> str:
    if row.skip_reason is not None:
        return f"not scored: {row.skip_reason}"
    drop = "" if row.supporting_drop is None else f" ({row.supporting_drop:.2f})"
    match row.attribution:
        case "supported":
            return f"{' or '.join(row.supporting_passage_ids)}{drop}"
        case "unlocated":
            return f"many passages together{drop}"
        case "none_reacts":
            return f"no passage reacts{drop}"
        case "not_wanted":
            return ""
        case state:
            return f"attribution {state}"


def _totals(ledger: Ledger, totals: Counter[str], elapsed_s: float) -> Table:
    table = Table(title="Totals", title_justify="left", title_style="bold", box=None, show_header=False)
    for name in ("exchanges", "sentences", "flagged", "unscored"):
        table.add_row(name, str(totals[name]))
    for outcome, count in _outcomes(ledger):
        table.add_row(f"messages {outcome}", str(count))
    table.add_row("seconds", f"{elapsed_s:.0f}")
    return table


def _outcomes(ledger: Ledger) -> Iterator[tuple[str, int]]:
    for (outcome, reason), count in sorted(ledger.counts().items(), key=str):
        yield (f"{outcome} ({reason})" if reason else str(outcome)), count


def _record(row: SentenceRow) -> dict[str, object]:
    return {
        "app": row.app,
        "interaction_id": row.interaction_id,
        "answer": row.answer,
        "sentence": row.sentence_index,
        "start": row.start_char,
        "end": row.end_char,
        "text": row.text,
        "score": row.score,
        "gap": row.gap,
        "jsd_no_context": row.jsd_no_context,
        "surprisal": row.surprisal,
        "worst_start": row.worst_start,
        "worst_end": row.worst_end,
        "n_tokens": row.n_tokens,
        "flagged": row.flagged,
        "skip_reason": row.skip_reason,
        "supporting_passage_id": row.supporting_passage_id,
        "supporting_passage_ids": row.supporting_passage_ids,
        "supporting_drop": row.supporting_drop,
        "attribution": row.attribution,
        "threshold_version": row.threshold_version,
        "scorer": row.scorer,
        "language": row.language,
        "language_supported": row.language_supported,
    }
