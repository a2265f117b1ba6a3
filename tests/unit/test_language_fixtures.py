from __future__ import annotations

from pathlib import Path

import pytest

from gasp_core.detectors.detector import AnswerEvidence
from gasp_core.detectors.registry import DETECTORS
from gasp_core.evaluation.data import read_answers
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.gasp_rag.metrics import roc_auc
from gasp_core.text.languages import language_of
from gasp_core.text.sentences import split_answer

FOLDER = Path(__file__).parents[1] / "fixtures" / "languages"
LANGUAGES = ("de", "fr", "es", "hi", "ja")


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_answer_tells_its_language(code: str) -> None:
    answers = read_answers(FOLDER / f"{code}.jsonl")
    assert len(answers) == 20
    assert {language_of(answer.exchange.answer) for answer in answers} == {code}


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_lexical_control_ranks_inventions_below_what_passages_say(code: str) -> None:
    labels: list[int] = []
    scores: list[float] = []
    for answer in read_answers(FOLDER / f"{code}.jsonl"):
        sentences = split_answer(answer.exchange.answer)
        found = DETECTORS["lexical"].scores(AnswerEvidence(answer.exchange, sentences))
        for score, label in zip(found, sentence_labels(answer, sentences), strict=True):
            if score is not None and label.unsupported is not None:
                labels.append(int(label.unsupported))
                scores.append(-score)
    assert len(labels) >= 75
    assert roc_auc(labels, scores) >= 0.85
