"""What a refit gains on sentences that it did not see, as labels come in, and the tables of many such grades."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.refit_traffic import Asked, Sentences, asked, halves
from worker.rules.refit.area import Comparison, compare
from worker.rules.refit.correction import Correction
from worker.rules.refit.lesson import Lesson, lesson_of
from worker.rules.refit.refit import STANDARD_ERRORS, RefitOutcome, Taught, refit
from worker.rules.refit.ridge import fit, usual


@dataclass(frozen=True, slots=True)
class Grade:
    """One draw at one size. ``reason`` and ``promoted`` are the decision of a first refit.

    Each ``gain`` is a difference of areas to what ships, on the held-out sentences: of what is in force after a first
    refit; of a correction that is always put in force (None if none can be fitted); of what is in force after a refit
    at this and each smaller size. ``standard_error`` is that of ``gain``, ``error_in_turn`` that of ``gain_in_turn``.
    """

    set: str
    detector: str
    asked: str
    draw: int
    labels: int
    unsupported: int
    reason: str
    promoted: bool
    gain: float
    standard_error: float
    gain_always: float | None
    gain_in_turn: float
    error_in_turn: float


def grades(
    sentences: Sentences, how: Asked, sizes: Sequence[int], draw: int, rng: np.random.Generator
) -> Iterator[Grade]:
    """What is gained while labels come in up to the largest of the sizes that the set has enough sentences for."""
    pool, held_out = halves(sentences, rng)
    truth = lesson_of(sentences.taught(held_out, np.ones(len(held_out))))
    if truth.unsupported.all() or not truth.unsupported.any():
        return
    given = next((found for size in sorted(sizes)[::-1] if (found := asked(sentences, pool, size, how, rng))), None)
    if given is None:
        return
    labels = sentences.taught(*given)
    in_force: Taught | None = None
    for size in (size for size in sizes if size <= len(labels)):
        first = refit(labels[:size])
        later = first if in_force is None else refit(labels[:size], in_force)
        if later.outcome is RefitOutcome.WITHDRAWN:
            in_force = None
        elif later.outcome is RefitOutcome.NEW and later.correction is not None:
            in_force = Taught(later.correction, labels[size - 1].labelled_at)
        gain = _gain(truth, first.correction)
        in_turn = _gain(truth, in_force.correction if in_force else None)
        yield Grade(
            sentences.name,
            sentences.detector,
            str(how),
            draw,
            size,
            sum(one.unsupported for one in labels[:size]),
            first.reason,
            first.outcome is RefitOutcome.NEW,
            gain.difference,
            gain.standard_error,
            _always(truth, lesson_of(labels[:size])),
            in_turn.difference,
            in_turn.standard_error,
        )


def markdown(grades: Iterable[Grade], draws: int) -> Iterator[str]:
    """A table per way of asking: a row per set and detector, a column per number of labels.

    A size that fewer than half of the draws have enough sentences for is left out.
    """
    by_case: dict[tuple[str, str, str], dict[int, list[Grade]]] = defaultdict(lambda: defaultdict(list))
    for one in grades:
        by_case[one.asked, one.set, one.detector][one.labels].append(one)
    sizes = sorted({size for found in by_case.values() for size in found})
    for how in dict.fromkeys(case[0] for case in by_case):
        yield f"\n**Labels {how}**: gain on average (if every correction were put in force), at worst; put in force,"
        yield "significantly worse; and of one that is refitted at every size: gain on average, at worst\n"
        yield "| set, detector | " + " | ".join(map(str, sizes)) + " |"
        yield "|---" * (len(sizes) + 1) + "|"
        for (asked_how, name, detector), found in by_case.items():
            if asked_how == how:
                cells = (_cell(found.get(size, [])) if len(found.get(size, [])) * 2 >= draws else "–" for size in sizes)
                yield f"| {name}, `{detector}` | " + " | ".join(cells) + " |"


def _cell(found: Sequence[Grade]) -> str:
    gains, in_turn = (np.array([one.gain for one in found]), np.array([one.gain_in_turn for one in found]))
    always = [one.gain_always for one in found if one.gain_always is not None]
    worse = np.mean([Comparison(one.gain, one.standard_error).is_worse(STANDARD_ERRORS) for one in found])
    promoted = np.mean([one.promoted for one in found])
    beside = f"{np.mean(always):+.3f}" if always else "–"
    return (
        f"{gains.mean():+.3f} ({beside}), {gains.min():+.3f}; {promoted:.0%}, {worse:.0%};"
        f" {in_turn.mean():+.3f}, {in_turn.min():+.3f}"
    )


def _gain(truth: Lesson, correction: Correction | None) -> Comparison:
    return compare(truth, truth.corrected(correction), truth.scores)


def _always(truth: Lesson, lesson: Lesson) -> float | None:
    if not 0 < lesson.unsupported.sum() < len(lesson):
        return None
    return _gain(truth, fit(lesson, usual(lesson))).difference
