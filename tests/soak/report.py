"""What a soak has to say: the figures, one table, one file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.soak.chaos import Tally
from tests.soak.checks import Findings
from tests.soak.crew import Crew, log_events
from tests.soak.schedule import Blow

OUTPUT = Path("build/bench/soak.json")

Figures = dict[str, object]


def blows(tally: Tally, crew: Crew) -> Figures:
    """What was done to the workers and servers, and how they took it."""
    return {
        "kills": tally.count(Blow.KILL),
        "kills_by_point": {name.partition(":")[2]: n for name, n in sorted(tally.done.items()) if "kill:" in name},
        "terms": tally.count(Blow.TERM, Blow.TERM_TWICE),
        "stops": tally.count(Blow.STOP),
        "broker_restarts": tally.count(Blow.BROKER),
        "database_restarts": tally.count(Blow.DATABASE),
        "scalings": tally.count(Blow.SCALE),
        "growths": tally.count(Blow.GROW),
        "freezes": tally.count(Blow.FREEZE),
        "restores": tally.count(Blow.RESTORE),
        "offsets_settled_again": sum(books.offsets for books in tally.lost_books),
        "restarts": crew.restarts,
        "unexpected_exits": len(crew.unexpected),
        "max_term_exit_s": _longest(tally.term_exits_s),
        "max_second_term_exit_s": _longest(tally.second_term_exits_s),
        "max_takeover_s": _longest(tally.takeovers_s),
        "max_frozen_exit_s": _longest(tally.frozen_exits_s),
        "max_thaw_s": _longest(tally.thaws_s),
        "max_notice_s": _longest(tally.notices_s),
        "stops_fenced": tally.stops_fenced,
    }


def outcomes(ledger: Iterable[Mapping[str, object]]) -> Figures:
    """How many records came to each end."""
    counts = Counter(_end(str(row["outcome"])) for row in ledger)
    return {name: counts[name] for name in ("stored", "skipped", "dead_lettered")}


def faults(findings: Findings) -> Figures:
    """What must be zero, and the dead letters that a crash repeated."""
    return {
        "lost": findings.lost,
        "unsettled": findings.unsettled,
        "duplicates": findings.doubled,
        "offset_regressions": findings.regressions,
        "dead_letter_repeats": findings.letter_repeats,
    }


def fenced_writes(logs: Iterable[Path]) -> int:
    """Writes of a partition that were refused, by the workers' own logs."""
    return sum(len(event["partitions"]) for log in logs for event in log_events(log) if event.get("event") == "fenced")


def show(figures: Figures, wrong: Iterable[str], places: Iterable[Path]) -> None:
    """Print the table, and what is wrong with where to look."""
    console = Console()
    table = Table("figure", "value", title="soak")
    for name, value in figures.items():
        table.add_row(name, json.dumps(value))
    console.print(table)
    complaints = list(wrong)
    for complaint in complaints:
        console.print(f"wrong: {complaint}", markup=False, style="red", soft_wrap=True)
    if complaints:
        console.print(f"look at {', '.join(map(str, places))}", markup=False, soft_wrap=True)
    console.print("the soak has failed" if complaints else "nothing was lost and nothing doubled")


def write(figures: Figures, wrong: Iterable[str], output: Path) -> None:
    """Write the figures and the complaints as JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**figures, "wrong": list(wrong)}, indent=2) + "\n", encoding="utf-8")


def _end(outcome: str) -> str:
    if outcome == "scored":
        return "stored"
    return "skipped" if outcome.startswith("skipped:") else "dead_lettered"


def _longest(seconds: Iterable[float]) -> float | None:
    return max((round(one, 2) for one in seconds), default=None)
