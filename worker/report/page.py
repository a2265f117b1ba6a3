"""The report as one HTML page: nothing is loaded from elsewhere, nothing runs, and every word is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from math import isnan

from worker.report import figures
from worker.report.contents import Contents
from worker.report.quality import Quality
from worker.rules.calibration.interval import Interval
from worker.store.report_contents import Change, LanguageCount, Lowest, Run

_STYLE = """
:root { color-scheme: light; --ink: #1d232c; --soft: #5c6675; --line: #dde1e7; --paper: #fff; --tint: #f5f7f9; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.2rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
header p, .note, figcaption, dt, .meta { color: var(--soft); font-size: .9rem; margin: 0; overflow-wrap: anywhere; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.numbers div { background: var(--tint); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .7rem; }
.numbers dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.numbers dd small { display: block; font-size: .85rem; font-weight: 400; color: var(--soft); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.2rem; }
.plots { margin-top: 1.2rem; }
.plots .note { grid-column: 1 / -1; }
figure { margin: 0; border: 1px solid var(--line); border-radius: .4rem; padding: .7rem; break-inside: avoid; }
figure h2 { margin: 0 0 .3rem; }
figure svg { display: block; width: 100%; height: auto; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
th, td { white-space: nowrap; font-variant-numeric: tabular-nums; }
td:nth-child(n + 8) { white-space: normal; min-width: 9rem; }
ol { padding-left: 1.4rem; }
li { margin-bottom: .9rem; break-inside: avoid; }
blockquote, details { overflow-wrap: anywhere; white-space: pre-wrap; }
blockquote { margin: 0; padding-left: .7rem; border-left: 3px solid #c2570c; }
details { font-size: .9rem; }
mark { background: #fbdfc7; color: inherit; border-bottom: 2px solid #c2570c; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .plots { grid-template-columns: 1fr 1fr; }
  .table { overflow: visible; font-size: 8pt; } tr { break-inside: avoid; }
  th, td + td, td:nth-child(n + 8) { white-space: normal; min-width: 0; } }
"""

_SHOWN_CHARS = 1_200
_INTERVALS = "with 95\N{NO-BREAK SPACE}% intervals"
_BENEATH = " Each tick beneath is a labelled sentence."
_UNSUPPORTED = "Not supported, so that their words cannot be compared well with those of the passages: {}."
_NO_LABELS = "Nobody has labelled a sentence of this period yet, so how far the flags can be trusted is not known."

_SEEN = (
    "The scores have in them what some of these labels taught, which flatters a little; the recalibrations below judge "
    "each label by what was learned without it."
)


def html(contents: Contents) -> str:
    """The whole page."""
    title = f"Audit of {contents.subject.app}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"{_header(title, contents)}<main>{_numbers(contents)}{_plots(contents)}"
        f"{_changes(contents.found.changes)}{_runs(contents.found.runs)}{_lowest(contents.found.lowest)}"
        "</main></body></html>\n"
    )


def _header(title: str, contents: Contents) -> str:
    subject, threshold = contents.subject, contents.threshold
    return (
        f"<header><h1>{escape(title)}</h1>"
        f"<p>{_time(subject.since)} to {_time(subject.until)} UTC · scorer {escape(contents.scorer)}</p>"
        f"<p>Threshold in force: {escape(threshold.name)} ({escape(threshold.learned_from)}): "
        f"flagged below {threshold.flag_below:.3f}, attributed below {threshold.attribute_below:.3f}"
        f"{'' if threshold.correction is None else ', of scores with what reviewers taught'}</p>"
        "</header>"
    )


# --- numbers ---


def _numbers(contents: Contents) -> str:
    found, totals = contents.found, contents.found.totals
    skipped = f"{totals.answers_skipped:,} could not be scored"
    share = totals.sentences_flagged / totals.sentences_scored if totals.sentences_scored else None
    agreement = found.agreement
    cards = [
        ("answers", f"{totals.answers:,}", skipped if totals.answers_skipped else ""),
        ("sentences scored", f"{totals.sentences_scored:,}", f"of {totals.sentences:,}"),
        ("flagged", _share(share), f"{totals.sentences_flagged:,} sentences"),
        ("tasks waiting", f"{found.days[-1].waiting:,}" if found.days else "0", ""),
        (
            "labelled sentences",
            f"{len(found.labels):,}",
            f"{sum(one.unsupported for one in found.labels):,} unsupported",
        ),
        *(_estimated(contents.quality) if contents.quality is not None else ()),
    ]
    if agreement is not None and agreement.alpha is not None:
        cards.append(("reviewers' agreement", f"{agreement.alpha:.2f}", f"alpha, {agreement.sentences:,} sentences"))
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>"
        for name, value, more in cards
    )
    notes = _NO_LABELS if contents.quality is None else _estimates_note(contents.quality)
    if contents.quality is not None and contents.threshold.correction is not None:
        notes = f"{notes} {_SEEN}"
    languages = _languages(found.languages)
    return f'<dl class="numbers">{shown}</dl><p class="note">{escape(notes)}</p>{languages}'


def _languages(counts: Sequence[LanguageCount]) -> str:
    """The share of answers in each language. Those that are not supported are named apart."""
    told = [one for one in counts if one.language is not None]
    total = sum(one.answers for one in told)
    if not total:
        return ""
    supported, others = (
        ", ".join(f"{one.language} {_share(one.answers / total)}" for one in told if bool(one.is_supported) is wanted)
        for wanted in (True, False)
    )
    sentences = [
        f"Answers by language: {supported}." if supported else "",
        _UNSUPPORTED.format(others) if others else "",
    ]
    return f'<p class="note">{escape(" ".join(filter(None, sentences)))}</p>'


def _estimated(quality: Quality) -> Iterable[tuple[str, str, str]]:
    found = quality.in_force
    for name, interval in (("recall", found.recall), ("precision", found.precision), ("unsupported", found.prior)):
        yield (name, *_interval(interval))


def _interval(interval: Interval) -> tuple[str, str]:
    estimate, low, high = interval.at(0)
    return _share(estimate), f"{_share(low)} to {_share(high)}"


def _estimates_note(quality: Quality) -> str:
    return (
        "Recall, precision and the share of unsupported sentences are those of the threshold in force, estimated from "
        f"the labels of the period {_INTERVALS}. Each label counts by how seldom such a sentence was asked about and "
        f"answered; {_share(quality.response.rate)} of what was asked about is answered, by what it stands for, and "
        f"{_share(quality.response.silent)} lies at scores where hardly anybody answers. "
        f"Together the labels tell as much as {quality.sample.effective_n:.0f} sentences chosen at random."
    )


# --- plots ---


def _plots(contents: Contents) -> str:
    found, quality, flag_below = contents.found, contents.quality, contents.threshold.flag_below
    if not len(found.scores):
        return f'<p class="note">No sentence of this period has a score.</p>{_queue(contents)}'
    shown = [
        _figure(
            "Scores",
            figures.scores_figure(found.scores, flag_below, quality),
            f"Histogram of {len(found.scores):,} sentence scores; those below {flag_below:.2f} are flagged. The lower "
            f"a score, the less its sentence leans on the passages.{_BENEATH if quality is not None else ''}",
        )
    ]
    if quality is not None:
        shown += _of_quality(quality, flag_below)
    return f'<div class="plots">{"".join(shown)}{_queue(contents)}</div>'


def _of_quality(quality: Quality, flag_below: float) -> Iterable[str]:
    yield _figure(
        "Precision and recall",
        figures.thresholds_figure(quality, flag_below),
        f"Precision and recall for every bound, {_INTERVALS}, weighted by the selection; dotted, the share of "
        "sentences flagged. The upright line is the bound in force.",
    )
    if quality.reliability:
        labels = ", ".join(str(one.labels) for one in quality.reliability)
        yield _figure(
            "Reliability",
            figures.reliability_figure(quality.reliability),
            f"How often sentences of a foretold probability are labelled unsupported, {_INTERVALS}, weighted by the "
            f"selection. Labels in each point: {labels}.",
        )


def _queue(contents: Contents) -> str:
    days = contents.found.days
    if not any(one.waiting or one.labels for one in days):
        return '<p class="note">No review task was waiting and no label came in.</p>'
    return _figure(
        "Review queue",
        figures.queue_figure(days),
        f"Tasks waiting at the end of each day, now {days[-1].waiting:,}, and labels a day, "
        f"{sum(one.labels for one in days):,} in all.",
    )


def _figure(title: str, drawn: str, alternative: str) -> str:
    marked = drawn.replace("<svg", f'<svg role="img" aria-label="{escape(alternative)}"', 1)
    return f"<figure><h2>{escape(title)}</h2>{marked}<figcaption>{escape(alternative)}</figcaption></figure>"


# --- tables and texts ---


def _changes(changes: Sequence[Change]) -> str:
    heads = ("in force from", "until", "version", "flag below", "attribute below", "reason", "by", "note")
    rows = (
        (
            _time(one.time),
            "now" if one.until is None else _time(one.until),
            one.threshold_version,
            f"{one.flag_below:.3f}",
            f"{one.attribute_below:.3f}",
            one.reason,
            one.activated_by,
            one.note or "",
        )
        for one in changes
    )
    note = '<p class="note">A version named default holds for every app that has none of its own.</p>'
    return f"<h2>Thresholds</h2>{note}{_table(heads, rows)}"


def _runs(runs: Sequence[Run]) -> str:
    heads = (
        "time",
        "outcome",
        "reason",
        "version",
        "labels",
        "unsupported",
        "score drift",
        "recall",
        "precision",
        "taught",
    )
    rows = (
        (
            _time(one.time),
            one.outcome,
            one.reason.replace("_", " "),
            one.threshold_version or one.in_force,
            _count(one.n_labels),
            _count(one.n_unsupported),
            "–" if one.psi is None else f"{one.psi:.2f}",
            _bounds(one.recall, one.recall_low, one.recall_high),
            _bounds(one.precision, one.precision_low, one.precision_high),
            _taught(one),
        )
        for one in runs
    )
    shown = _table(heads, rows) if runs else '<p class="note">No recalibration in this period.</p>'
    return f"<h2>Recalibrations</h2>{shown}"


def _taught(run: Run) -> str:
    """What came of learning a correction: why, and how the rankings compare."""
    if run.refit is None:
        return "–"
    if run.auc_in_force is None or run.auc_learned is None or run.auc_standard_error is None:
        return run.refit.replace("_", " ")
    areas = f"AUC {run.auc_in_force:.3f}, learned {run.auc_learned:.3f} ± {run.auc_standard_error:.3f}"
    words = "" if run.auc_lexical is None else f", novel words {run.auc_lexical:.3f}"
    return f"{run.refit.replace('_', ' ')}: {areas}{words}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _lowest(lowest: Sequence[Lowest]) -> str:
    if not lowest:
        return '<h2>Lowest sentences</h2><p class="note">No sentence of this period is flagged.</p>'
    note = '<p class="note">Marked are the words of each that are grounded least.</p>' if _is_marked(lowest) else ""
    return f"<h2>Lowest sentences</h2>{note}<ol>{''.join(_sentence(one) for one in lowest)}</ol>"


def _is_marked(lowest: Sequence[Lowest]) -> bool:
    return any(one.worst_start is not None for one in lowest)


def _sentence(one: Lowest) -> str:
    likely = "" if one.unsupported_probability is None else f" · {_share(one.unsupported_probability)} unsupported"
    score = f"score\N{NO-BREAK SPACE}{one.score:.2f}{likely}"
    place = f"{one.interaction_id}, sentence {one.sentence_index + 1} · {_time(one.time)} · {score}"
    return (
        f'<li><blockquote>{_marked(one)}</blockquote><p class="meta">{escape(place)}</p>'
        f"<details><summary>Question and passage</summary>{escape(_shortened(one.question))}\n{escape(_support(one))}"
        "</details></li>"
    )


def _marked(one: Lowest) -> str:
    """The sentence with its worst words marked."""
    text = _shortened(one.text)
    if one.worst_start is None or one.worst_end is None or one.worst_start - one.start_char >= _SHOWN_CHARS:
        return escape(text)
    start, end = one.worst_start - one.start_char, one.worst_end - one.start_char
    return f"{escape(text[:start])}<mark>{escape(text[start:end])}</mark>{escape(text[end:])}"


def _support(one: Lowest) -> str:
    if one.supporting_passage_text is None:
        return "It rests on many passages together." if one.attribution == "unlocated" else "No passage supports it."
    return f"Rests on {' or '.join(one.supporting_passage_ids)}: {_shortened(one.supporting_passage_text)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _share(value: float | None) -> str:
    """In percent; a dash for what is not known."""
    return "–" if value is None or isnan(value) else f"{value * 100:.1f}\N{NO-BREAK SPACE}%"


def _bounds(value: float | None, low: float | None, high: float | None) -> str:
    return _share(value) if low is None or high is None else f"{_share(value)} ({_share(low)} to {_share(high)})"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"
