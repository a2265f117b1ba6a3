from __future__ import annotations

import pytest

from gasp_core.grounding import Exchange, Passage
from gasp_core.text.lexical import Novelty, novelties

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


def german(passage: str, text: str) -> Novelty:
    """What a text says beyond a passage, in an answer that is long enough to tell its language."""
    answer = f"Das ist die Antwort auf die Frage, und sie ist nicht sehr lang. {text}"
    (found,) = novelties(Exchange("Wie ist es?", (Passage("1", passage),), answer), [text])
    return found


def test_a_german_compound_of_known_words_is_known() -> None:
    passage = "Der Eintritt in das Museum kostet zehn Euro."
    assert german(passage, "Der Museumseintritt kostet zehn Euro.").words == 0
    assert german(passage, "Der Parkhauseintritt kostet zehn Euro.").words == 1 / 4


def test_what_is_elided_before_a_word_does_not_make_it_novel() -> None:
    passage = Passage("1", "Une économie forte, et non des opinions : voilà le programme de la ville.")
    answer = "Le programme est pour la ville, avec l'économie et peu d\u2019opinions."
    (found,) = novelties(Exchange("Quel est le programme ?", (passage,), answer), [answer])
    assert found.words == 0


@pytest.mark.parametrize(
    ("passage", "said", "invented"),
    [
        ("博物館は午前九時に開館し、入場料は五百円です。", "入場料は五百円です。", "水曜日は休館です。"),
        ("博物馆上午九点开门，门票五十元。", "门票五十元。", "周三闭馆休息。"),
        ("พิพิธภัณฑ์เปิดเวลาเก้าโมงเช้า ค่าเข้าชมห้าสิบบาท", "ค่าเข้าชมห้าสิบบาท", "วันพุธหยุดทำการ"),
        ("박물관은 오전 아홉 시에 문을 열고 입장료는 오천 원입니다.", "입장료는 오천 원이다.", "수요일마다 휴관한다."),
        ("संग्रहालय सुबह नौ बजे खुलता है और टिकट पचास रुपये का है।", "टिकट पचास रुपये का है।", "बुधवार को यह बंद रहता है।"),
        ("สารមន្ទីរបើកម៉ោងប្រាំបួនព្រឹក តម្លៃសំបុត្រប្រាំដុល្លារ", "តម្លៃសំបុត្រប្រាំដុល្លារ", "ថ្ងៃពុធបិទ"),
    ],
)
def test_an_invention_is_novel_in_every_script(passage: str, said: str, invented: str) -> None:
    exchange = Exchange("?", (Passage("1", passage),), said + invented)
    found = novelties(exchange, [said, invented])
    assert found[0].words <= 0.4
    assert found[1].words >= 0.6
    assert found[1].pairs > found[0].pairs
