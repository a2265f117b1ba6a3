"""Detectors that also read the answer without each chunk of the context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gasp_core.detectors.detector import Detector, Learner, Need, Training
from gasp_core.detectors.learning import boosted_trees, standardised_sum
from gasp_core.detectors.sentences import by_leave_one_out
from gasp_core.detectors.two_pass import gap_and_jsd
from gasp_core.grounding import SentenceGrounding


def max_drop(one: SentenceGrounding) -> float | None:
    """The largest drop of a chunk, in nats a token; None if none was left out, as for the others here."""
    return _mean(_drops(one)[:1])


def mean_drop(one: SentenceGrounding) -> float | None:
    """The mean drop of the chunks, in nats a token."""
    return _mean(_drops(one))


def top2_drop(one: SentenceGrounding) -> float | None:
    """The mean of the two largest drops, in nats a token."""
    return _mean(_drops(one)[:2])


def max_jsd(one: SentenceGrounding) -> float | None:
    """The largest divergence that the removal of a chunk makes, in [0, ln 2]."""
    return max((drop.jsd for drop in one.drops), default=None)


def _drops(one: SentenceGrounding) -> list[float]:
    """The drops, largest first."""
    return sorted((drop.drop for drop in one.drops), reverse=True)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _four(one: SentenceGrounding) -> list[float | None]:
    return [*gap_and_jsd(one), max_drop(one), max_jsd(one)] if one.drops else []


def _all(one: SentenceGrounding) -> list[float | None]:
    return [*_four(one), mean_drop(one), top2_drop(one), one.surprisal, one.n_tokens] if one.drops else []


def _of_one(name: str, feature: Callable[[SentenceGrounding], float | None]) -> Detector:
    return Detector(name, Need.LEAVE_ONE_OUT, by_leave_one_out(lambda one: [feature(one)]))


MAX_DROP = _of_one("max-drop", max_drop)
MEAN_DROP = _of_one("mean-drop", mean_drop)
TOP2_DROP = _of_one("top2-drop", top2_drop)
MAX_JSD = _of_one("max-jsd", max_jsd)
STANDARDISED_SUM = Detector(
    "standardised-sum",
    Need.LEAVE_ONE_OUT,
    by_leave_one_out(_four),
    learner=Learner(Training.SAMPLE, standardised_sum),
)
TRAINED = Detector(
    "trained", Need.LEAVE_ONE_OUT, by_leave_one_out(_all), learner=Learner(Training.LABELS, boosted_trees)
)
