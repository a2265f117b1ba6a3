from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.evaluation.data import read_answers
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.gasp_rag.metrics import roc_auc
from gasp_core.grounding import Exchange, Passage
from gasp_core.text.agreement import DIRECTIONS, Agreement, agreements
from gasp_core.text.sentences import split_answer

PASSAGES = (
    Passage("1", "The museum of Arvenna opens on Monday at nine. Tickets for the museum cost 12 euros in May."),
    Passage("2", "The castle of Belmora does not open in winter. Tickets for the castle cost 15 dollars in June."),
)
FOLDER = Path(__file__).parents[1] / "fixtures" / "languages"


def agreement(text: str, passages: tuple[Passage, ...] = PASSAGES) -> Agreement:
    # The answer is long enough to tell its language.
    (found,) = agreements(Exchange("", passages, f"This is the answer to what you asked. {text}"), [text])
    return found


def test_what_a_passage_says_word_for_word_agrees_in_everything() -> None:
    assert agreement("Tickets for the museum cost 12 euros in May.") == Agreement(1.0, 0, 0, 0, 0, 0, 1.0, 0.0)


def test_facts_of_another_sentence_are_none_of_the_one_that_supports() -> None:
    # 15, dollars and June are in the passages, but said of the castle.
    found = agreement("Tickets for the museum cost 15 dollars in June, in Cestria.", PASSAGES[:1])
    assert (found.numbers, found.dates, found.units, found.names) == (1, 1, 1, 2)
    merged = agreement("The museum of Arvenna opens on Monday in June.")
    assert merged.coverage == 4 / 5


def test_a_denial_of_what_the_support_says_is_told_either_way() -> None:
    assert agreement("The museum of Arvenna does not open on Monday.").negation == 1
    assert agreement("The castle of Belmora opens in winter.").negation == 1
    assert agreement("The castle of Belmora does not open in winter.").negation == 0


def test_runs_do_not_go_on_from_one_passage_to_the_next() -> None:
    passages = (Passage("1", "alpha beta gamma"), Passage("2", "delta epsilon zeta"))
    found = agreement("alpha beta gamma delta epsilon zeta", passages)
    assert (found.copied, found.triples) == (3 / 6, 2 / 4)


def test_the_longest_run_is_found_where_its_beginning_comes_often() -> None:
    found = agreement("one two three four", (Passage("1", "one two five. one two three four. one two six."),))
    assert found.copied == 1.0


@pytest.mark.parametrize("text", ["", "!?", "zebra", "of the"])
def test_a_sentence_that_nothing_supports_has_no_conflicts(text: str) -> None:
    found = agreement(text)
    assert astuple(found)[:7] == (0.0, 0, 0, 0, 0, 0, 0.0)


def test_every_term_has_a_direction() -> None:
    assert list(DIRECTIONS) == [field.name for field in fields(Agreement)]


@pytest.mark.parametrize("code", ["de", "fr", "es", "hi", "ja"])
def test_coverage_ranks_inventions_in_every_language(code: str) -> None:
    labels: list[int] = []
    scores: list[float] = []
    for answer in read_answers(FOLDER / f"{code}.jsonl"):
        sentences = split_answer(answer.exchange.answer)
        texts = [answer.exchange.answer[sentence.start : sentence.end] for sentence in sentences]
        for found, label in zip(agreements(answer.exchange, texts), sentence_labels(answer, sentences), strict=True):
            if label.unsupported is not None:
                labels.append(int(label.unsupported))
                scores.append(-found.coverage)
    assert roc_auc(labels, scores) >= 0.8


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_any_texts_agree_within_bounds(passages: list[str], texts: list[str]) -> None:
    exchange = Exchange("", tuple(Passage(str(number), text) for number, text in enumerate(passages)), " ".join(texts))
    found = agreements(exchange, texts)
    assert len(found) == len(texts)
    for one in found:
        assert all(0 <= share <= 1 for share in (one.coverage, one.copied, one.triples, one.negation))
