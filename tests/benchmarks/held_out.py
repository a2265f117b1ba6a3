"""What was learned, measured on what it was not learned from: readouts out of fold by source, and by other sets alone.

Everything is read with the states of the readout's layer, so that one reading serves every detector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gasp_core.arrays import Floats
from gasp_core.detectors.detector import AnswerEvidence, Detector, FeatureVector, Need
from gasp_core.detectors.fused import FUSED, FUSED_CROSS_VALIDATED
from gasp_core.detectors.fused_model import shipped_fused
from gasp_core.detectors.readout.detector import READOUT, shipped_readout
from gasp_core.detectors.readout.terms import sentence_terms
from gasp_core.evaluation.cache import exchange_key
from gasp_core.evaluation.data import LabelledAnswer, read_answers
from gasp_core.evaluation.gather import Reader
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.evaluation.run import ProgressTracker
from gasp_core.grounding import AnswerGrounding
from gasp_core.training.command import read_set
from gasp_core.training.fit import fit, out_of_fold
from gasp_core.training.rows import Rows, labelled_rows

# A readout by what was learned from the sets that are not the measured one.
ELSEWHERE = "readout-elsewhere"
UNLABELLED = "not_labelled"

# By answer, what is known of each of its sentences.
_Known: TypeAlias = dict[str, list[FeatureVector]]
_Read: TypeAlias = list[tuple[LabelledAnswer, AnswerEvidence]]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Detectors as they do on a set, by its name, out of fold where something was learned from it."""

    known: dict[str, dict[str, _Known]]

    def of(self, detector: Detector, dataset: str) -> Detector:
        """The detector to measure in place of this one on that set."""
        if detector.name == FUSED.name and dataset == shipped_fused().provenance["data"]:
            return replace(FUSED_CROSS_VALIDATED, name=FUSED.name)
        if detector.name not in {READOUT.name, ELSEWHERE}:
            return detector
        known = self.known.get(detector.name, {}).get(dataset)
        return Detector(detector.name, Need.TWO_PASS, _of_states if known is None else partial(_of_kept, known))


def hold_out(paths: Sequence[Path], reader: Reader, track: ProgressTracker) -> HeldOut:
    """Learn again from the sets among ``paths`` that the shipped readout was learned from, and score what was held out.

    ``reader`` reads the states themselves. Raises as reading does.
    """
    learned = [path for path in paths if path.stem in shipped_readout().provenance["sets"]]
    if not learned:
        return HeldOut({})
    answers = [read_answers(path) for path in learned]
    read = [read_set(one, reader, track) for one in answers]
    names = [path.stem for path in learned]
    rows, ridge = labelled_rows(read, names), float(shipped_readout().provenance["ridge"])
    by_source = out_of_fold(rows, ridge)
    by_set = np.zeros(len(rows))
    for number in range(len(learned)):
        theirs = rows.sets == number
        if len(learned) > 1:
            by_set[theirs] = fit(_numbered(rows.where(~theirs)), ridge).log_odds(rows.where(theirs))
    found = {READOUT.name: by_source} | ({ELSEWHERE: by_set} if len(learned) > 1 else {})
    return HeldOut({name: _by_answer(names, read, rows, scores) for name, scores in found.items()})


def _numbered(rows: Rows) -> Rows:
    """With the sets numbered from 0 on without a gap."""
    return replace(rows, sets=np.unique(rows.sets, return_inverse=True)[1])


def _by_answer(names: Sequence[str], read: Sequence[_Read], rows: Rows, scores: Floats) -> dict[str, _Known]:
    """Deal the scores of the rows, which are in the order of what was read, out to the answers again."""
    found: dict[str, _Known] = {}
    for number, (name, answers) in enumerate(zip(names, read, strict=True)):
        remaining = iter(scores[rows.sets == number].tolist())
        found[name] = {exchange_key(answer.exchange): _sentences(answer, known, remaining) for answer, known in answers}
        if next(remaining, None) is not None:
            raise ValueError("more scores than sentences")
    return found


def _sentences(answer: LabelledAnswer, evidence: AnswerEvidence, scores: Iterator[float]) -> list[FeatureVector]:
    """Of each sentence the next score, unless it has none or nobody labelled it."""
    labels = sentence_labels(answer, evidence.sentences)
    return [
        FeatureVector(reason=sentence.skip_reason)
        if sentence.gap is None
        else FeatureVector(reason=UNLABELLED)
        if label.unsupported is None
        else FeatureVector((next(scores),))
        for sentence, label in zip(_grounding(evidence).sentences, labels, strict=True)
    ]


def _of_kept(known: _Known, evidence: AnswerEvidence) -> list[FeatureVector]:
    return known[exchange_key(evidence.exchange)]


def _of_states(evidence: AnswerEvidence) -> list[FeatureVector]:
    """By the shipped readout, out of the states themselves."""
    readout, grounding = shipped_readout(), _grounding(evidence)
    terms = sentence_terms(evidence.exchange, grounding, [term.name for term in readout.terms])
    return [
        FeatureVector(reason=sentence.skip_reason)
        if values is None
        else FeatureVector(
            (readout.log_odds(values, (np.array(sentence.readings) @ readout.projection + readout.offsets).tolist()),)
        )
        for sentence, values in zip(grounding.sentences, terms, strict=True)
    ]


def _grounding(evidence: AnswerEvidence) -> AnswerGrounding:
    if evidence.two_pass is None:
        raise ValueError("two passes are needed")
    return evidence.two_pass
