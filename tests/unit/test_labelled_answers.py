"""Files of labelled answers, and which of our sentences their labels make unsupported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gasp_core.errors import InputError
from gasp_core.evaluation.data import LabelledAnswer, LabelSpan, is_labelled_answers, read_answers, sample
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.grounding import Exchange
from gasp_core.text.sentences import split_answer
from tests.labelled_answers import labelled_row, labelled_rows, write_rows

ANSWER = "It opens at nine. It costs 5."


def labels_of(answer: str, **labels: Any) -> list[bool | None]:
    labelled = LabelledAnswer("a", "s", Exchange("", (), answer), **labels)
    return [label.unsupported for label in sentence_labels(labelled, split_answer(answer))]


def test_a_line_is_read_with_its_labels_and_grouped_by_its_source(tmp_path: Path) -> None:
    first, second = read_answers(write_rows(tmp_path / "data.jsonl", labelled_rows(2)))
    assert (first.id, first.source, first.generator, first.unsupported) == ("answer-0", "source-0", "generator-b", True)
    assert first.spans is not None
    assert first.exchange.answer[first.spans[0].start : first.spans[0].end] == "A café waits upstairs."
    assert (second.source, second.unsupported, second.spans) == ("source-0", False, ())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None, "passages": 3}, "needs a 'context'"),
        ({"answer": 7}, "needs an 'answer' that is text"),
        ({"source_id": None}, "needs 'source_id': a text or a whole number"),
        ({"id": ["x"]}, "needs 'id': a text or a whole number"),
        ({"labels": None}, "needs one of labels, sentence_labels, answer_label"),
        ({"labels": "everything"}, "has 'labels' that is no list of objects"),
        ({"labels": [{"start": 0, "end": 10_000}]}, "has a span in 'labels' that is not within the answer"),
        ({"labels": [{"start": 4, "end": 4}]}, "has a span in 'labels' that is not within the answer"),
        ({"labels": [{"start": "0", "end": 4}]}, "has a span in 'labels' that is not within the answer"),
        ({"labels": [{"start": True, "end": 4}]}, "has a span in 'labels' that is not within the answer"),
        ({"sentence_labels": [{"start": 0, "end": 4}]}, "has a label in 'sentence_labels' that is not 0 or 1"),
        ({"answer_label": "yes"}, "has a label in 'answer_label' that is not 0 or 1"),
        ({"answer_label": 0.5}, "has a label in 'answer_label' that is not 0 or 1"),
        ({"id": "answer-0"}, "has the id of line 1"),
    ],
)
def test_a_broken_line_is_named_and_not_quoted(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    rows = [labelled_row(0, invented=True), labelled_row(1, invented=False) | change]
    with pytest.raises(InputError, match=r"data\.jsonl:2: ") as caught:
        read_answers(write_rows(tmp_path / "data.jsonl", rows))
    assert message in str(caught.value)
    assert "museum" not in str(caught.value)


@pytest.mark.parametrize(("text", "line"), [("{}\n{", 2), ("[]\n", 1), ('{"answer": NaN', 1), ("\n", 0)])
def test_what_is_no_json_object_is_named_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_answers(path)
    assert caught.value.line == line


def test_answers_judged_as_a_whole_are_not_mixed_with_others(tmp_path: Path) -> None:
    rows = [labelled_row(0, invented=True), labelled_row(1, invented=False) | {"answer_label": 1}]
    with pytest.raises(InputError, match="on some lines and none on others"):
        read_answers(write_rows(tmp_path / "data.jsonl", rows))


def test_the_form_of_a_file_tells_answers_from_results(tmp_path: Path) -> None:
    assert is_labelled_answers(write_rows(tmp_path / "data.jsonl", labelled_rows(1)))
    assert not is_labelled_answers(write_rows(tmp_path / "results.jsonl", [{"label": 1, "sensitivity": 0.5}]))


def test_a_sample_is_drawn_by_its_seed_and_keeps_the_order(tmp_path: Path) -> None:
    answers = read_answers(write_rows(tmp_path / "data.jsonl", labelled_rows(40)))
    drawn = sample(answers, 10, seed=1)
    assert drawn == sample(answers, 10, seed=1) != sample(answers, 10, seed=2)
    assert drawn == sorted(drawn, key=answers.index)
    assert sample(answers, None, seed=1) == sample(answers, 99, seed=1) == answers


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (3, 8, [True, False]),  # within the first
        (13, 22, [True, True]),  # over both
        (15, 29, [False, True]),  # "e." is the first one's last two characters
        (0, 20, [True, False]),  # "It" is the second one's first two
        (27, 28, [False, True]),  # "5": a short span that is wholly within
    ],
)
def test_a_span_makes_a_sentence_unsupported_unless_it_only_touches_its_border(
    start: int, end: int, expected: list[bool]
) -> None:
    assert labels_of(ANSWER, spans=(LabelSpan(start, end, unsupported=True),)) == expected


def test_a_labelled_sentence_counts_for_the_one_of_ours_that_it_mostly_is() -> None:
    # Theirs ends one character late, and nobody labelled what follows.
    theirs = LabelSpan(0, 19, unsupported=True)
    assert labels_of(ANSWER, sentences=(theirs,)) == [True, None]
    # Theirs are finer: one of two parts is unsupported.
    finer = (
        LabelSpan(0, 8, unsupported=False),
        LabelSpan(8, 17, unsupported=True),
        LabelSpan(18, 29, unsupported=False),
    )
    assert labels_of(ANSWER, sentences=finer) == [True, False]
    # Theirs is coarser.
    assert labels_of(ANSWER, sentences=(LabelSpan(0, 29, unsupported=True),)) == [True, True]


def test_the_label_of_an_answer_is_that_of_its_sentences_whatever_spans_there_are() -> None:
    assert labels_of(ANSWER, label=False, spans=(LabelSpan(0, 17, unsupported=True),)) == [False, False]
