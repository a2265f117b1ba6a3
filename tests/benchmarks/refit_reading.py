"""The sentences of the refit benchmark with what the model said of them, read once and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from gasp_core.detectors.detector import Need
from gasp_core.detectors.fused_model import DIRECTIONS, shipped_fused
from gasp_core.detectors.readout.detector import READOUT, shipped_readout
from gasp_core.detectors.readout.terms import sentence_terms
from gasp_core.evaluation.data import LabelledAnswer, read_answers, sample
from gasp_core.evaluation.gather import Reader, gather
from gasp_core.evaluation.labels import SentenceLabel, sentence_labels
from gasp_core.grounding import Sentence
from tests.benchmarks.refit_traffic import Sentences


def read(path: Path, reader: Reader, limit: int) -> list[Sentences]:
    """The sentences of a file with the scores of readout and of fused, of at most so many answers drawn at random."""
    answers = sample(read_answers(path), limit, 0)
    known = gather((one.exchange for one in answers), {Need.TWO_PASS}, reader.for_detectors([READOUT]))
    rows: list[tuple[float, float, tuple[float, ...], bool, int, str]] = []
    shown = track(known, f"reading {path.stem}", total=len(answers), console=Console(stderr=True))
    for number, (answer, evidence) in enumerate(zip(answers, shown, strict=True)):
        assert evidence.two_pass is not None
        terms = sentence_terms(answer.exchange, evidence.two_pass)
        labels = _labels(answer, evidence.sentences)
        for sentence, values, label in zip(evidence.two_pass.sentences, terms, labels, strict=True):
            if values is not None and label.unsupported is not None:
                rows.append(
                    (
                        shipped_readout().log_odds(values, sentence.readings),
                        shipped_fused().log_odds(values[: len(DIRECTIONS)]),
                        (*values, sentence.surprisal or 0.0),
                        label.unsupported,
                        number,
                        answer.source,
                    )
                )
    readout, fused, of_terms, unsupported, numbers, sources = zip(*rows, strict=True)
    return [
        Sentences(
            path.stem,
            detector,
            np.array(scores, dtype=np.float64),
            np.array(of_terms, dtype=np.float64),
            np.array(unsupported, dtype=np.bool_),
            np.unique(numbers, return_inverse=True)[1],
            np.unique(sources, return_inverse=True)[1],
        )
        for detector, scores in (("readout", readout), ("fused", fused))
    ]


def _labels(answer: LabelledAnswer, sentences: Sequence[Sentence]) -> list[SentenceLabel]:
    """By the spans where there are any, because reviewers label sentences; an answer that is right has none."""
    if answer.label and answer.spans is not None:
        return sentence_labels(replace(answer, label=None), sentences)
    return sentence_labels(answer, sentences)
