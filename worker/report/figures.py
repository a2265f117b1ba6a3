"""The plots, as SVG without text from outside. Drawn through matplotlib's objects, which leave no global state."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from worker.report.quality import Bin, Quality
from worker.rules.calibration.interval import Interval
from worker.rules.calibration.labels import Booleans, Floats
from worker.store.queue_days import Day

# Told apart by everybody, and on paper without colours by their lightness.
BLUE, ORANGE, GREY, SAND, INK = "#2166ac", "#c2570c", "#c9ced6", "#ecb98f", "#333a45"
SIZE_IN = (5.4, 3.3)
BARS = 60
MARKS = 1_500


def scores_figure(scores: Floats, flag_below: float, quality: Quality | None) -> str:
    """How the sentences score, the bound below which they are flagged, and the labelled ones beneath."""
    figure, axes = _figure("score", "sentences")
    edges = _edges(scores, flag_below)
    counts, _ = np.histogram(np.clip(scores, edges[0], edges[-1]), edges)
    flagged = int(np.searchsorted(edges, flag_below))
    axes.stairs(counts[flagged:], edges[flagged:], fill=True, color=GREY, label="sentences")
    axes.stairs(counts[:flagged], edges[: flagged + 1], fill=True, color=SAND, label="flagged")
    axes.axvline(flag_below, color=INK, linewidth=1.4)
    top = max(1, counts.max())
    if quality is not None:
        _marks(axes, np.clip(quality.sample.scores, edges[0], edges[-1]), quality.sample.unsupported, top)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(-0.19 * top if quality is not None else 0, 1.04 * top)
    axes.set_yticks([tick for tick in MaxNLocator(5, integer=True).tick_values(0, top) if tick <= top])
    _legend_above(axes, 2)
    return _svg(figure, "scores")


def _edges(scores: Floats, flag_below: float) -> Floats:
    """Bars of equal width that hold nearly all scores; one begins at the bound."""
    low, high = np.quantile(scores, (0.0005, 0.9995))
    low, high = min(low, flag_below), max(high, flag_below)
    width = max(high - low, 0.01) / BARS
    first, last = math.floor((low - flag_below) / width) - 1, math.ceil((high - flag_below) / width) + 1
    return np.asarray(flag_below + width * np.arange(first, last + 1), dtype=np.float64)


def _marks(axes: Axes, scores: Floats, unsupported: Booleans, top: float) -> None:
    """A tick for each labelled sentence below the axis; of very many, as many as can be told apart."""
    for kind, colour, row, name in ((True, ORANGE, -0.06, "unsupported"), (False, BLUE, -0.13, "supported")):
        theirs = np.sort(scores[unsupported == kind])
        drawn = theirs[np.unique(np.linspace(0, max(0, len(theirs) - 1), MARKS).round().astype(int))[: len(theirs)]]
        rows = np.full(len(drawn), row * top)
        axes.plot(drawn, rows, "|", color=colour, markersize=8, alpha=0.6, label=f"labelled {name}")


def reliability_figure(bins: Sequence[Bin]) -> str:
    """What was foretold against what people found: on the diagonal both are the same."""
    figure, axes = _figure("foretold probability of unsupported", "share labelled unsupported")
    foretold = np.array([one.foretold for one in bins])
    shares = np.array([one.share for one in bins])
    below = shares - np.array([one.low for one in bins])
    above = np.array([one.high for one in bins]) - shares
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (4, 3)), label="as foretold")
    axes.errorbar(
        foretold, shares, yerr=np.maximum(0, [below, above]), fmt="o", color=BLUE, capsize=3, label="labels, 95 %"
    )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    return _svg(figure, "reliability")


def thresholds_figure(quality: Quality, flag_below: float) -> str:
    """Precision and recall for every bound that could be set."""
    figure, axes = _figure("flagged below", "share")
    found = quality.over_thresholds
    _band(axes, found.thresholds, found.recall, BLUE, "recall")
    _band(axes, found.thresholds, found.precision, ORANGE, "precision")
    axes.plot(found.thresholds, found.flagged_share, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)), label="flagged")
    axes.axvline(flag_below, color=INK, linewidth=1.4)
    axes.set_xlim(min(found.thresholds[0], flag_below - 0.05), max(found.thresholds[-1], flag_below + 0.05))
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _legend_above(axes, 3)
    return _svg(figure, "thresholds")


def queue_figure(days: Sequence[Day]) -> str:
    """Tasks that wait at the end of each day, and the labels of the day."""
    figure, axes = _figure("", "a day")
    dates = np.array([one.day for one in days], dtype="datetime64[D]")
    axes.bar(dates, [one.labels for one in days], width=0.8, color=GREY, label="labels")
    axes.plot(
        dates,
        [one.waiting for one in days],
        color=BLUE,
        linewidth=1.8,
        marker="o",
        markersize=2.5,
        label="tasks waiting at its end",
    )
    locator = AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]  # matplotlib's types leave it out
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]  # as above
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    _legend_above(axes, 3)
    return _svg(figure, "queue")


def _figure(across: str, upwards: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(across)
    axes.set_ylabel(upwards)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e8eaee", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _band(axes: Axes, across: Floats, found: Interval, colour: str, name: str) -> None:
    known = np.isfinite(found.estimate)
    axes.fill_between(across, found.low, found.high, where=known, color=colour, alpha=0.18, linewidth=0)
    axes.plot(across[known], found.estimate[known], color=colour, linewidth=1.8, label=name)


def _legend_above(axes: Axes, columns: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=9, borderaxespad=0.2)


def _svg(figure: Figure, name: str) -> str:
    """The svg element alone, as wide as the page lets it be, with ids that no other plot of the page has."""
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    drawn = written.getvalue().decode("utf-8")
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, count=1, flags=re.DOTALL)
    drawn = re.sub(r"<!--.*?-->", "", drawn, flags=re.DOTALL)
    return re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", drawn)
