"""What a report shows of one app and scorer in a period, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from worker.rules.calibration.labels import Floats, LabelledSentence, Unanswered
from worker.store.queue_days import Day


@dataclass(frozen=True, slots=True)
class Subject:
    """The app, the scorer, and the period: by the time of the answers, from ``since`` to before ``until``."""

    app: str
    scorer_id: int
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Totals:
    """Current answers of the period and their sentences."""

    answers: int
    answers_skipped: int
    sentences: int
    sentences_scored: int
    sentences_flagged: int


@dataclass(frozen=True, slots=True)
class LanguageCount:
    """How many of these answers are in a language; its tag (BCP 47), None where that was not noted."""

    language: str | None
    is_supported: bool | None
    answers: int


@dataclass(frozen=True, slots=True)
class Change:
    """A version came into force, at a time until which another did (None: it still is). The bounds are scores."""

    time: datetime
    until: datetime | None
    threshold_version: str
    flag_below: float
    attribute_below: float
    learned_from: str
    reason: str
    activated_by: str
    note: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """A recalibration and what it found; shares in [0, 1], None where there was nothing to tell them from.

    ``refit`` says why there is another correction or none; the areas under the ROC curve are of what was in force, of
    what was learned, with the standard error of their difference, and of counting novel words.
    """

    time: datetime
    outcome: str
    reason: str
    in_force: str
    threshold_version: str | None
    n_labels: int | None
    n_unsupported: int | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    psi: float | None
    refit: str | None = None
    auc_in_force: float | None = None
    auc_learned: float | None = None
    auc_standard_error: float | None = None
    auc_lexical: float | None = None


@dataclass(frozen=True, slots=True)
class Lowest:
    """A flagged sentence with its score. The texts are the user's: never log them.

    ``[worst_start, worst_end)`` are the words that are grounded least, where it begins at ``start_char``; all three
    count in the answer.
    """

    time: datetime
    interaction_id: str
    sentence_index: int
    score: float
    unsupported_probability: float | None
    text: str
    question: str
    supporting_passage_id: str | None
    supporting_passage_text: str | None
    supporting_passage_ids: list[str]
    attribution: str
    start_char: int
    worst_start: int | None
    worst_end: int | None


@dataclass(frozen=True, slots=True)
class ReviewerAgreement:
    """Krippendorff's alpha of the app's reviewers (1 agree, 0 as chance would) over so many sentences."""

    sentences: int
    alpha: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a report shows. Labels and what nobody answered are of what was asked about in the period.

    The most frequent languages come first.
    """

    totals: Totals
    languages: tuple[LanguageCount, ...]
    scores: Floats
    labels: tuple[LabelledSentence, ...]
    unanswered: tuple[Unanswered, ...]
    days: tuple[Day, ...]
    changes: tuple[Change, ...]
    runs: tuple[Run, ...]
    lowest: tuple[Lowest, ...]
    agreement: ReviewerAgreement | None
