"""What was measured: for every detector its areas with intervals, its operating points and where it does well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors.fused import FUSED
from gasp_core.detectors.text import LEXICAL
from gasp_core.detectors.two_pass import GAP
from gasp_core.evaluation.bootstrap import Places, Resamples, resample
from gasp_core.evaluation.ranking import Entry, Rows, areas, difference, operating_points
from gasp_core.evaluation.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The rows of every detector: sentences, where people labelled such, else answers. ``level`` says which.

    ``answers`` and ``answer_means`` are answers by their lowest and by their mean sentence. ``answer_of`` (n,),
    ``generators`` and ``kinds`` are those of the rows: which answer it is of, who wrote that, and which types of
    unsupported spans there are in it.
    """

    level: str
    rows: Mapping[str, Rows]
    answers: Mapping[str, Rows]
    answer_means: Mapping[str, Rows]
    answer_of: Places
    generators: tuple[str | None, ...]
    kinds: tuple[frozenset[str], ...]
    resamples: Resamples


def measured(table: Table, *, n_resamples: int, seed: int) -> Measured:
    """Lay the table out for measuring. Sentences that nobody labelled are left out."""
    places = {source: at for at, source in enumerate(dict.fromkeys(answer.source for answer in table.answers))}
    answers = _answer_rows(table, places, np.fmin.reduce)
    by_answer = table.answers[0].label is not None
    labelled = np.array([label.unsupported is not None for label in table.labels], dtype=bool)
    sentences = [at for at, is_labelled in enumerate(labelled) if is_labelled]
    return Measured(
        level="answer" if by_answer else "sentence",
        rows=answers if by_answer else _sentence_rows(table, places, labelled),
        answers=answers,
        answer_means=_answer_rows(table, places, np.mean),
        answer_of=np.arange(len(table.answers)) if by_answer else table.answer_of[labelled],
        generators=tuple(
            answer.generator
            for answer in (table.answers if by_answer else [table.answers[table.answer_of[at]] for at in sentences])
        ),
        kinds=() if by_answer else tuple(table.labels[at].kinds for at in sentences),
        resamples=resample(len(places), n_resamples, seed),
    )


def report(table: Table, found: Measured, names: Sequence[str], peers: Sequence[str] = ()) -> dict[str, Entry]:
    """An entry per detector that was asked for, ready for JSON: numbers are finite or None.

    ``peers`` are those of other people's models, with which each is compared, too.
    """
    return {name: _entry(table, found, name) | {"vs_peers": _vs_peers(found, name, peers)} for name in names}


def _entry(table: Table, found: Measured, name: str) -> Entry:
    rows, resamples = found.rows[name], found.resamples
    entry: Entry = {"level": found.level, **areas(rows, resamples)}
    for other in (GAP, LEXICAL, FUSED):
        others = found.rows.get(other.name)
        entry[f"vs_{other.name}"] = difference(rows, others, resamples) if others else None
    entry |= {f"answer_{key}": value for key, value in areas(found.answers[name], resamples).items()}
    entry["answer_auc_of_mean"] = areas(found.answer_means[name], resamples)["auc"]
    entry |= operating_points(rows)
    entry["without_score"] = dict(Counter(reason for reason in table.scores[name].reasons if reason is not None))
    entry["by_generator"] = {
        generator: areas(rows.where(np.array([one == generator for one in found.generators])), resamples)
        for generator in dict.fromkeys(one for one in found.generators if one is not None)
    }
    entry["by_type"] = _by_type(rows, found)
    return entry


def _vs_peers(found: Measured, name: str, peers: Sequence[str]) -> Entry:
    rows = found.rows
    return {peer: difference(rows[name], rows[peer], found.resamples) for peer in peers if peer != name}


def _by_type(rows: Rows, found: Measured) -> Entry:
    """Sentences of one type against all that are not unsupported."""
    return {
        kind: areas(rows.where(~rows.unsupported | np.array([kind in kinds for kinds in found.kinds])), found.resamples)
        for kind in sorted(frozenset().union(*found.kinds))
    }


def _sentence_rows(table: Table, places: Mapping[str, int], labelled: Flags) -> dict[str, Rows]:
    unsupported = np.array([bool(label.unsupported) for label in table.labels], dtype=bool)
    source_of = np.array([places[source] for source in table.sources], dtype=np.intp)
    return {name: Rows(unsupported, scores.values, source_of).where(labelled) for name, scores in table.scores.items()}


def _answer_rows(table: Table, places: Mapping[str, int], combine: Callable[[Floats], float]) -> dict[str, Rows]:
    unsupported = np.array([answer.unsupported for answer in table.answers], dtype=bool)
    source_of = np.array([places[answer.source] for answer in table.answers], dtype=np.intp)
    return {
        name: Rows(unsupported, _by_answer(scores.values, table.answer_of, len(table.answers), combine), source_of)
        for name, scores in table.scores.items()
    }


def _by_answer(values: Floats, answer_of: Places, n_answers: int, combine: Callable[[Floats], float]) -> Floats:
    """Of each answer's sentences with a score, the lowest or the mean; NaN if there is none."""
    combined = np.full(n_answers, np.nan)
    known = np.isfinite(values)
    if known.any():
        answers, starts = np.unique(answer_of[known], return_index=True)
        combined[answers] = [combine(group) for group in np.split(values[known], starts[1:])]
    return combined
