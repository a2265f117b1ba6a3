"""Fits the coefficients of the fused detector that come with the package. Writes gasp_core/detectors/fused.v2.json.

    python -m tests.benchmarks.fit_fused LABELLED.jsonl [--dtype float32] [--also-for bfloat16]

The data must be of a kind that coefficients may be learned from. Answers are read once and kept, as by `gasp eval`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import track
from sklearn.model_selection import StratifiedGroupKFold

from gasp_core.arrays import Flags, Floats
from gasp_core.detectors import fused_model
from gasp_core.detectors.detector import Need
from gasp_core.detectors.directed import directed_logistic, directed_terms
from gasp_core.detectors.fused_model import FILE, Fused, Term, fused_features
from gasp_core.evaluation.data import read_answers
from gasp_core.evaluation.gather import gather
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.evaluation.run import load_models
from gasp_core.gasp_rag.metrics import roc_auc
from gasp_core.packaged import PACKAGED_MODEL
from gasp_core.scorer import MASKED_METHOD_VERSION, METHOD_VERSION

FOLDS = 5


def main(
    path: Annotated[Path, typer.Argument(help="Labelled answers, as JSON lines.")],
    model: Annotated[str, typer.Option(help="Causal language model.")] = PACKAGED_MODEL,
    dtype: Annotated[str, typer.Option(help="The dtype whose scores are learned from.")] = "float32",
    also_for: Annotated[list[str] | None, typer.Option(help="Another dtype whose scores are close enough.")] = None,
    output: Annotated[Path, typer.Option(help="Where the coefficients go.")] = Path(fused_model.__file__).parent / FILE,
) -> None:
    """Learn from every labelled sentence, and say how well that does on sources that were held out."""
    reader = load_models(model, device="cpu", dtype=dtype).exact
    answers = read_answers(path)
    rows: list[tuple[float, ...]] = []
    labels: list[bool] = []
    sources: list[str] = []
    known = gather((answer.exchange for answer in answers), {Need.TWO_PASS}, reader)
    for answer, evidence in zip(track(answers, description="reading"), known, strict=True):
        assert evidence.two_pass is not None
        found = sentence_labels(answer, evidence.sentences)
        for features, label in zip(fused_features(answer.exchange, evidence.two_pass), found, strict=True):
            if features is not None and label.unsupported is not None:
                rows.append(features)
                labels.append(label.unsupported)
                sources.append(answer.source)
    readings, unsupported = np.array(rows), np.array(labels)
    terms, intercept = directed_terms(readings, unsupported)
    identity = reader.scorer.identity
    fused = Fused(
        terms=tuple(_rounded(term) for term in terms),
        intercept=round(intercept, 4),
        # How chunks are removed is nothing to two passes.
        scorers=tuple(
            replace(identity, dtype=admitted, method=method)
            for admitted in (identity.dtype, *(also_for or ()))
            for method in (METHOD_VERSION, MASKED_METHOD_VERSION)
        ),
        provenance={
            "data": path.stem,
            "sentences": len(labels),
            "unsupported": int(unsupported.sum()),
            "sources": len(set(sources)),
            "cross_validated_auc": round(cross_validated(readings, unsupported, sources), 4),
            "date": datetime.now(UTC).date().isoformat(),
        },
    )
    output.write_text(json.dumps(fused.to_json(), indent=2) + "\n", encoding="utf-8")
    print(json.dumps(fused.to_json(), indent=2))


def cross_validated(readings: Floats, unsupported: Flags, sources: list[str]) -> float:
    """The area under the ROC curve of scores learned from other sources."""
    scores = np.zeros(len(readings))
    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    for training, held_out in splitter.split(readings, unsupported, sources):
        scores[held_out] = directed_logistic(readings[training], unsupported[training])(readings[held_out])
    return float(roc_auc(unsupported, -scores))


def _rounded(term: Term) -> Term:
    return replace(
        term, mean=round(term.mean, 4), deviation=round(term.deviation, 4), coefficient=round(term.coefficient, 4)
    )


if __name__ == "__main__":
    typer.run(main)
