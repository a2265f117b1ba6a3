"""The report as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gasp_core.evaluation.ranking import Entry, Json

NOTHING = "–"


def report_lines(dataset: str, entries: Mapping[str, Entry]) -> Iterator[str]:
    """Yield a table of the detectors, of what each is better than a peer, and of areas by generator and by type."""
    level = next(iter(entries.values()))["level"]
    yield f"{dataset}, AUC by {level}"
    head = ["detector", "n", "unsup.", "AUC", "PR-AUC", "vs gap", "vs lexical", "vs fused", "answer AUC", "best F1"]
    yield from _columns([head, *([name, *_row(entry)] for name, entry in entries.items())])
    yield from _against_peers(entries)
    for key, title in (("by_generator", "generator"), ("by_type", "type")):
        yield from _breakdown(entries, key, title)


def attribution_lines(dataset: str, entry: Entry) -> Iterator[str]:
    """Yield how often the supporting chunk is the best match, beside the controls."""
    yield f"{dataset}, supporting chunks: {entry['n_grounded']} grounded sentences, {entry['without_reaction']} without"
    columns = ("supporting_chunk", "first_chunk", "random_chunk", "vs_first", "vs_random")
    rows = [["best match by", "n", *(column.replace("_", " ") for column in columns)]]
    for name, found in entry.items():
        if isinstance(found, dict) and "supporting_chunk" in found:
            shares = (_interval(found[column], signed=column.startswith("vs")) for column in columns)
            rows.append([name, str(found["n"]), *shares])
    yield from _columns(rows)
    masked = entry["masked"]
    same = _interval(masked["same_chunk"]) if isinstance(masked, dict) else NOTHING
    yield f"masked leave-one-out names the same chunk: {same}"


def _row(entry: Entry) -> list[str]:
    best = entry["best_f1"]
    return [
        str(entry["n"]),
        str(entry["n_unsupported"]),
        _interval([entry["auc"], entry["lo"], entry["hi"]]),
        _number(entry["pr_auc"]),
        _interval(entry["vs_gap"], signed=True),
        _interval(entry["vs_lexical"], signed=True),
        _interval(entry["vs_fused"], signed=True),
        _interval([entry["answer_auc"], entry["answer_lo"], entry["answer_hi"]]),
        _number(best["f1"] if isinstance(best, dict) else None),
    ]


def _against_peers(entries: Mapping[str, Entry]) -> Iterator[str]:
    parts = {name: part for name, entry in entries.items() if isinstance(part := entry["vs_peers"], dict)}
    peers = list(dict.fromkeys(peer for part in parts.values() for peer in part))
    if not peers:
        return
    yield ""
    yield from _columns(
        [
            ["AUC less that of", *peers],
            *([name, *(_interval(part.get(peer), signed=True) for peer in peers)] for name, part in parts.items()),
        ]
    )


def _breakdown(entries: Mapping[str, Entry], key: str, title: str) -> Iterator[str]:
    parts = {name: part for name, entry in entries.items() if isinstance(part := entry[key], dict)}
    names = list(dict.fromkeys(name for part in parts.values() for name in part))
    if not names:
        return
    yield ""
    yield from _columns(
        [[f"AUC by {title}", *parts], *([name, *(_area(part.get(name)) for part in parts.values())] for name in names)]
    )


def _area(entry: Json) -> str:
    return _number(entry["auc"]) if isinstance(entry, dict) else NOTHING


def _interval(value: Json, *, signed: bool = False) -> str:
    if not isinstance(value, list) or value[0] is None:
        return NOTHING
    estimate, low, high = (_number(one, signed=signed) for one in value)
    return f"{estimate} [{low}, {high}]"


def _number(value: Json, *, signed: bool = False) -> str:
    if not isinstance(value, int | float):
        return NOTHING
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
