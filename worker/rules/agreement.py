"""How far reviewers agree beyond chance: Krippendorff's alpha for nominal values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from schemas.review_label import Label

Unit = tuple[str, str, int, int]
"""App, interaction id, revision and sentence index."""


@dataclass(frozen=True, slots=True)
class Vote:
    """What a reviewer said last of a sentence, and what that counts as: ``unsupported`` is None of who cannot tell."""

    unit: Unit
    reviewer: str
    label: Label
    unsupported: bool | None

    @property
    def app(self) -> str:
        """The application that the sentence is of."""
        return self.unit[0]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two reviewers, or all of an app where ``pair`` is None, agree on the sentences that more than one labelled.

    ``alpha`` is over supported and not, those who cannot tell left out; ``alpha_of_words`` over the five labels. 1 is
    agreement, 0 what chance gives, below it systematic dispute; None if nothing can be told from chance.
    """

    app: str
    pair: tuple[str, str] | None
    sentences: int
    agreed: int
    alpha: float | None
    alpha_of_words: float | None


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Alpha of the values that each unit was given, whose order does not matter; units with one value do not count.

    None if all the values are the same, or if there are none.
    """
    pairable = [values for values in units if len(values) > 1]
    kinds = {value: number for number, value in enumerate(dict.fromkeys(one for unit in pairable for one in unit))}
    if len(kinds) < 2:
        return None
    coincidences = np.zeros((len(kinds), len(kinds)))
    for values in pairable:
        counts = np.bincount([kinds[value] for value in values], minlength=len(kinds)).astype(float)
        coincidences += (np.outer(counts, counts) - np.diag(counts)) / (len(values) - 1)
    totals = coincidences.sum(axis=0)
    n = totals.sum()
    observed = n - np.trace(coincidences)
    expected = (n * n - (totals * totals).sum()) / (n - 1)
    return float(1 - observed / expected)


def agreements(votes: Iterable[Vote]) -> list[Agreement]:
    """Of each app first all reviewers together, then each pair that has labelled the same sentence, by name."""
    by_app: dict[str, dict[Unit, dict[str, Vote]]] = defaultdict(lambda: defaultdict(dict))
    for vote in votes:
        by_app[vote.app][vote.unit][vote.reviewer] = vote
    found = []
    for app, units in sorted(by_app.items()):
        found.append(_agreement(app, None, list(units.values())))
        found.extend(_agreement(app, pair, both) for pair, both in sorted(_pairs(units.values()).items()))
    return [one for one in found if one.sentences]


def _pairs(units: Iterable[Mapping[str, Vote]]) -> dict[tuple[str, str], list[Mapping[str, Vote]]]:
    """The sentences that both of a pair have labelled, with their two votes."""
    found: dict[tuple[str, str], list[Mapping[str, Vote]]] = defaultdict(list)
    for unit in units:
        for first, second in combinations(sorted(unit), 2):
            found[first, second].append({name: unit[name] for name in (first, second)})
    return found


def _agreement(app: str, pair: tuple[str, str] | None, units: Sequence[Mapping[str, Vote]]) -> Agreement:
    voted = _values(units, lambda vote: vote.unsupported)
    both = [values for values in voted if len(values) > 1]
    return Agreement(
        app=app,
        pair=pair,
        sentences=len(both),
        agreed=sum(len(set(values)) == 1 for values in both),
        alpha=krippendorff_alpha(voted),
        alpha_of_words=krippendorff_alpha(_values(units, lambda vote: vote.label)),
    )


def _values(units: Iterable[Mapping[str, Vote]], value_of: Callable[[Vote], Hashable | None]) -> list[list[Hashable]]:
    each = ([value_of(vote) for vote in unit.values()] for unit in units)
    return [[value for value in values if value is not None] for values in each]
