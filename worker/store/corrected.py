"""A sentence's score under any correction, reckoned by the database from what is stored of it, without the model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Double, case, cast, func, literal
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from gasp_core.detectors.fused_model import Term
from worker.rules.refit.correction import TERMS, Correction

# Those of a table or view that has ``score``, ``correction`` and ``terms``.
Columns: TypeAlias = ReadOnlyColumnCollection[str, Any]


def detector_score(row: Columns) -> ColumnElement[float]:
    """What the detector gave the sentence, without any correction; NULL where it has no score."""
    score: ColumnElement[float] = row.score - func.coalesce(row.correction, 0)
    return score


def corrected_score(row: Columns, correction: Correction | None) -> ColumnElement[float]:
    """What the sentence scores under a correction (None: under none).

    NULL where it has no score, and under a correction where its terms are not known, as of earlier releases.
    """
    if correction is None:
        return detector_score(row)
    added = added_by(row, correction)
    return case((has_terms(row), detector_score(row) + added))


def added_by(row: Columns, correction: Correction) -> ColumnElement[float]:
    """What a correction adds to the score of a sentence that has terms."""
    return reduce(add, (_log_odds(row, term) for term in correction.terms), literal(0.0, Double))


def has_terms(row: Columns) -> ColumnElement[bool]:
    """Whether a correction can be reckoned: there are as many terms as it may read. NULL where there are none."""
    return func.cardinality(row.terms) == len(TERMS)


def stored_terms(row: Columns) -> ColumnElement[Any]:
    """The terms in double precision: a number of single precision is written shorter than it is."""
    return cast(row.terms, ARRAY(Double)).label("terms")


def known_terms(stored: Sequence[float] | None) -> tuple[float, ...] | None:
    """The terms that were read so; None where there are none, or not those of this release."""
    return None if stored is None or len(stored) != len(TERMS) else tuple(stored)


def _log_odds(row: Columns, term: Term) -> ColumnElement[float]:
    """As ``Term.log_odds`` has it."""
    value: ColumnElement[float] = cast(row.terms[TERMS.index(term.name) + 1], Double)
    deviations = (value - literal(term.mean, Double)) / literal(term.deviation, Double)
    return literal(term.coefficient, Double) * deviations
