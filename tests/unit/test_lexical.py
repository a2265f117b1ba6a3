from __future__ import annotations

import pytest

from gasp_core.grounding import Exchange, Passage
from gasp_core.text.lexical import Novelty, novelties, words

EXCHANGE = Exchange(
    "When does the museum open?",
    (Passage("1", "The museum of Arvenna opens at nine. Tickets cost 12 euros."), Passage("2", "Dogs stay outside.")),
    "",
)


def novelty(text: str) -> Novelty:
    (found,) = novelties(EXCHANGE, [text])
    return found


def test_what_a_passage_says_is_not_novel_whatever_its_endings_and_its_case() -> None:
    assert novelty("the MUSEUM of Arvenna opened at nine") == Novelty(words=0.0, pairs=0.0, names=0, numbers=0)


def test_a_word_of_the_question_is_known_but_a_pair_has_to_be_in_a_passage() -> None:
    found = novelties(Exchange("Is the cellar damp?", EXCHANGE.passages, ""), ["Damp cellar dogs"])
    assert found == [Novelty(words=0.0, pairs=1.0, names=0, numbers=0)]


def test_names_and_numbers_that_no_passage_has_are_counted() -> None:
    found = novelty("Tickets cost 15 euros, says Belmora.")
    assert (found.names, found.numbers) == (1, 1)
    # Of ticket, cost, 15, euro, say and belmora three are new; of five pairs only the first is there.
    assert [found.words, found.pairs] == pytest.approx([3 / 6, 4 / 5])


def test_the_word_that_begins_a_sentence_is_no_name() -> None:
    assert novelty("Penguins live there.").names == 0


@pytest.mark.parametrize("text", ["", "!?", "of the and"])
def test_a_text_without_content_has_no_novel_word(text: str) -> None:
    assert novelty(text).words == 0.0


def test_words_are_folded_and_lose_what_hangs_on_them() -> None:
    assert [word.stem for word in words("The ﬁrst Museum's openings, quickly: 2,5 km")] == [
        "the",
        "first",
        "museum",
        "open",
        "quick",
        "2",
        "5",
        "km",
    ]
