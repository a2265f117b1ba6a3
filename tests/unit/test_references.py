from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.grounding import Exchange, Passage
from gasp_core.text.lexical import Novelty, novelties
from gasp_core.text.references import _REFERENCE, references, without_references


def left(text: str) -> str:
    return " ".join(without_references(text).split())


SAID = {
    "3. Title your graph": "Title your graph",
    "* **Salt** and pepper": "**Salt** and pepper",
    "a) first": "first",
    "2. Maintain it": "Maintain it",
    "1、まず混ぜます": "まず混ぜます",
    "It opens at nine [1][2, 3]. So [doc1].": "It opens at nine . So .",
    "Yes【4:0†policy.pdf】, indeed<sup>1</sup>.": "Yes , indeed .",
    "See [1](https://example.org/a?b=1) and [the page](https://example.org).": "See and [the page] .",
    "It opens at nine (Source: doc 3).": "It opens at nine .",
    "It opens at nine (siehe Dokument 2).": "It opens at nine .",
    "According to Passage 2, it opens at nine.": "it opens at nine.",
    "Based on the provided passages, it opens at nine.": "it opens at nine.",
    "Passages 1, 2 and 3 say so.": "say so.",
    "Laut Dokument 3 ist es offen.": "ist es offen.",
    "Selon le passage 2, il est ouvert.": "il est ouvert.",
    "Según el documento 1, abre a las nueve.": "abre a las nueve.",
    "文書2によると、九時に開きます。": "、九時に開きます。",
    "根据段落1，九点开门。": "，九点开门。",
    "स्रोत 2 के अनुसार यह खुला है।": "यह खुला है।",
}


@pytest.mark.parametrize("text", SAID)
def test_what_only_says_where_it_stands_is_taken_out(text: str) -> None:
    assert left(text) == SAID[text]


@pytest.mark.parametrize(
    "text",
    [
        "3. Oktober 1990 war ein Mittwoch.",
        "It costs 12.5 euros (2 for children).",
        "The passage of 1832 acts took 3 years.",
        "Table 2 shows 5 sources of 12 rivers.",
        "B. Franklin was born in 1706.",
        "-5 degrees",
        "The documents 1990 saw were lost.",
        "Multiple 2",
        "9.",
    ],
)
def test_what_says_something_of_the_subject_stays(text: str) -> None:
    assert left(text) == text


def test_markers_and_references_are_no_new_numbers_and_names() -> None:
    exchange = Exchange("How?", (Passage("1", "Title your graph. Label both axes."),), "")
    (found,) = novelties(exchange, ["3. Title your graph: according to Passage 2, label both axes [4]."])
    assert found == Novelty(words=0.0, pairs=found.pairs, names=0, numbers=0)


@given(st.text(alphabet="[](){}【】1. -*aPpassage,\n") | st.text())
def test_references_are_in_order_and_lie_in_the_text(text: str) -> None:
    end = 0
    for start, behind in references(text):
        assert end <= start < behind <= len(text)
        end = behind


@given(
    st.text(alphabet="[]()【】1. -*\n")
    | st.sampled_from(["Source 1", "Doc 2", "文件3", "brano 1", "le fonti 2", "REFS 3"])
)
def test_the_quick_look_overlooks_none(text: str) -> None:
    assert [match.span() for match in _REFERENCE.finditer(text)] == list(references(text))


@pytest.mark.parametrize("text", SAID)
def test_each_kind_is_seen_at_a_quick_look(text: str) -> None:
    assert list(references(text))
