"""Answers whose terms tell more than their scores, and reviewers who say so."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from gasp_core.detectors.fused_model import Term
from tests.integration.store_examples import advance, prepared, rows, scored
from worker.jobs.recalibration import COMMAND, AppRecalibration, Recalibrator
from worker.rules.refit.correction import TERMS, Correction
from worker.rules.settlement import Settlement
from worker.rules.verdict import Threshold, threshold_for
from worker.store.store import Store
from worker.store.threshold_versions import Proposal

SENTENCES = 4
GAP = TERMS.index("gap")
# Of nothing that matters, and more of it than of the score.
HARMFUL = Correction((Term("coverage", 0.5, 1.0, -8.0),), learned_until=0.0)

ASKED = """
    WITH task AS (
        INSERT INTO review_tasks
            (app, interaction_id, revision, interaction_pk, scorer_id, threshold_id, reason, probability, lowest_score,
             reviewers, state, closed_at)
        SELECT i.app, i.interaction_id, i.revision, i.id, v.scorer_id, v.threshold_id, 'sampled', 0.5, v.lowest_score,
            1, 'labelled', now()
        FROM verdicts v JOIN interactions i ON i.id = v.interaction_pk
        WHERE NOT EXISTS (SELECT FROM review_tasks t WHERE t.interaction_pk = i.id)
        RETURNING id, interaction_pk, scorer_id
    )
    INSERT INTO review_sentences
        (task_pk, sentence_index, start_char, end_char, score, flagged, reason, probability, terms, correction)
    SELECT task.id, s.sentence_index, s.start_char, s.end_char, s.score, s.flagged, 'sampled', 0.5, s.terms,
        s.correction
    FROM task
    JOIN verdicts v ON v.interaction_pk = task.interaction_pk AND v.scorer_id = task.scorer_id
    JOIN sentences s ON s.verdict_id = v.id
"""
LABELLED = """
    INSERT INTO review_labels (tool, external_id, action, label, task_id, sentence_index, reviewer, source)
    SELECT 'test', said.interaction_id || '-' || said.sentence_index, 'label', said.label, t.task_id,
        said.sentence_index, 'ada', 'sql'
    FROM unnest(%(ids)s::text[], %(indexes)s::int[], %(labels)s::text[])
        AS said (interaction_id, sentence_index, label)
    JOIN review_tasks t ON t.interaction_id = said.interaction_id
"""
TABLES = ("thresholds", "threshold_activations", "calibration_runs")


class Desk:
    """Answers of apps that are judged by what is in force when they come, and reviewers who say what of them is true.

    A deviation of ``gap`` is worth ``effect`` log-odds of being grounded.
    """

    def __init__(self, store: Store, url: str) -> None:
        self.store, self.url = store, url
        self.scorer_id, self.default = prepared(store)
        self.offset = 0

    def comes(self, answers: int, *, effect: float, app: str = "shop", labelled: bool = True) -> None:
        rng = np.random.default_rng(self.offset)
        threshold = threshold_for(app, self.store.thresholds.in_force(self.scorer_id, [app]))
        batch: list[Settlement] = []
        ids: list[str] = []
        indexes: list[int] = []
        labels: list[str] = []
        for place in range(self.offset, self.offset + answers):
            scores = 1.5 + 1.5 * rng.normal(size=SENTENCES)
            terms = rng.normal(size=(SENTENCES, len(TERMS))).astype(np.float32).astype(np.float64)
            grounded = rng.random(SENTENCES) < 1 / (1 + np.exp(-(scores + effect * terms[:, GAP])))
            values = [tuple(row) for row in terms.tolist()]
            batch.append(scored(place, f"id-{place}", scores.tolist(), threshold, app=app, terms=values))
            ids += [f"id-{place}"] * SENTENCES
            indexes += range(SENTENCES)
            labels += ["supported" if one else "unsupported" for one in grounded]
        end = self.offset + answers
        self.store.settlements.settle(self.scorer_id, batch, [advance(self.offset, end)])
        self.offset = end
        if labelled:
            rows(self.url, ASKED)
            rows(self.url, LABELLED, ids=ids, indexes=indexes, labels=labels)

    def run(self, **options: Any) -> list[AppRecalibration]:
        return list(Recalibrator.of(self.store).recalibrations(threading.Event(), trigger=COMMAND, **options))

    def in_force(self, app: str | None = "shop") -> Threshold:
        in_force = self.store.thresholds.in_force(self.scorer_id)
        return in_force[None] if app is None else threshold_for(app, in_force)

    def put(self, correction: Correction, app: str | None = "shop") -> Threshold:
        proposal = Proposal(app, self.scorer_id, 0.5, 0.5, "calibrated", "for tests", correction=correction)
        self.store.thresholds.activate(self.store.thresholds.add(proposal).id, "worker")
        return self.in_force(app)

    def books(self) -> list[list[dict[str, Any]]]:
        return [rows(self.url, f"SELECT * FROM {table} ORDER BY id") for table in TABLES]
