"""The report as one picture: ROC, precision and recall, and how the scores of both labels lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gasp_core.errors import InputError
from gasp_core.extras import require_extra

if TYPE_CHECKING:
    from gasp_core.evaluation.ranking import Rows

COLUMNS = 4
BINS = 40


def require_picture(path: Path) -> None:
    """Raise InputError unless ``path`` is a ``.png`` in a folder that exists, PackageMissing without matplotlib."""
    require_extra("plots")
    if path.is_dir():
        raise InputError(str(path), 0, "is a folder; a file is wanted")
    if path.suffix.lower() != ".png":
        raise InputError(str(path), 0, "the plot must be a .png file")
    if not path.parent.is_dir():
        raise InputError(str(path), 0, "its folder does not exist")


def draw(title: str, detectors: Mapping[str, Rows], path: Path) -> None:
    """Write a PNG: two panels of curves over a panel of score histograms per detector."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # seconds to import
    from matplotlib.figure import Figure

    scored = {name: rows.scored() for name, rows in detectors.items()}
    bands = math.ceil(len(scored) / COLUMNS)
    figure = Figure(figsize=(14, 5 + 2.6 * bands), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    grid = figure.add_gridspec(1 + bands, COLUMNS, height_ratios=[2, *[1] * bands])
    _curves(figure.add_subplot(grid[0, :2]), figure.add_subplot(grid[0, 2:]), scored)
    for at, (name, rows) in enumerate(scored.items()):
        _histogram(figure.add_subplot(grid[1 + at // COLUMNS, at % COLUMNS]), name, rows)
    figure.savefig(path, format="png", dpi=110)


def _curves(roc: Any, precision: Any, detectors: Mapping[str, Rows]) -> None:  # noqa: ANN401 - matplotlib's axes
    from sklearn.metrics import precision_recall_curve, roc_curve

    for name, rows in detectors.items():
        if rows.both:
            false_positives, true_positives, _ = roc_curve(rows.unsupported, rows.suspicions)
            roc.plot(false_positives, true_positives, label=name, linewidth=1.2)
            precisions, recalls, _ = precision_recall_curve(rows.unsupported, rows.suspicions)
            precision.step(recalls, precisions, where="post", label=name, linewidth=1.2)
    roc.plot([0, 1], [0, 1], color="grey", linestyle=":", linewidth=0.8)
    roc.set(title="ROC", xlabel="grounded flagged", ylabel="unsupported flagged", xlim=(0, 1), ylim=(0, 1))
    precision.set(title="precision and recall", xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    if roc.get_legend_handles_labels()[1]:
        roc.legend(loc="lower right", fontsize="small")


def _histogram(axes: Any, name: str, rows: Rows) -> None:  # noqa: ANN401 - as above
    kinds = {"grounded": rows.scores[~rows.unsupported], "unsupported": rows.scores[rows.unsupported]}
    shown = {label: scores for label, scores in kinds.items() if len(scores)}
    axes.set_title(name, fontsize="medium")
    axes.set_yticks([])
    if shown:
        axes.hist(list(shown.values()), bins=BINS, density=True, histtype="step", label=list(shown))
        axes.legend(fontsize="x-small")
