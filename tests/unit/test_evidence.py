"""A passage that says nothing is no evidence; one in doubt is."""

from __future__ import annotations

import pytest

from gasp_core.grounding import Passage
from gasp_core.text.chunks import context_chunks
from gasp_core.text.evidence import PassageSkip, is_unseen, passage_skip

BLANK = [
    *("", " \n\t", "\u3000", "\u200b", "\u200b\u200d\ufeff \u2060", "\u00ad", "\u200e\u202e", "\u2800\u3164\uffa0"),
    *(
        "\ufe0f",
        "\U000e0001\U000e0061",
        "\ufffd\ufffd",
        "---",
        "…",
        "* * *",
        "|---|:-:|",
        "``` ```",
        "[]",
        "{}",
        '""',
        "()",
    ),
    *("\N{COMBINING GRAPHEME JOINER}", "\x07\x1b", "「」", "¿?"),
]
MARKUP = [
    *(
        "<p></p>",
        "<p>\u200b</p>",
        "<div class='a b'><br/></div>",
        "&nbsp;",
        "&nbsp;&#8203;&zwnj;",
        "<!-- kept empty -->",
    ),
    *("<!-- never closed", "<p></p>\n\n<ul><li></li></ul>", "<?xml version='1.0'?>", "<!DOCTYPE html><html></html>"),
    *("<style>p {color: red}</style>", "<SCRIPT>alert(1)</SCRIPT >", "<p>" * 500 + "</p>" * 500, "<a href='x"),
    "<table>" + "<tr><td>&nbsp;</td></tr>" * 300 + "</table>",
]
PLACEHOLDER = [
    *("None", "none", " NULL ", "null", "nil", "NaN", "N/A", "n.a.", "#N/A", "undefined", "(empty)", "[object Object]"),
    *("[None]", "['None', null]", '["N/A"]', '["null"]', '{"text": null, "meta": {"source": ""}}'),
    *('[{"page_content": "N/A", "metadata": {}}]', '{"html": "<p></p>"}', "None, None", "<p>None</p>", "&lt;none&gt;"),
    *("No documents found.", "Not available", "keine Angabe", "Nicht verfügbar.", "non disponible", "Sin resultados"),
    *(
        "não disponível",
        "нет данных",
        "немає",
        "brak danych",
        "該当なし",
        "该当なし".replace("该", "該"),
        "暂无数据",
        "없음",
    ),
    *(
        "لا يوجد",
        "אין",
        "उपलब्ध नहीं",
        "ไม่มีข้อมูล",
        "yok",
        "n\u200bull",
        "ＮＵＬＬ",
        "Na\u0303o disponi\u0301vel",
    ),
]
EVIDENCE = [
    *(
        "No",
        "0",
        "7 %",
        "€ 12",
        "A",
        "雨",
        "ok",
        "unknown",
        "Nein.",
        "нет",
        "否",
        "👍",
        "½",
        "None of the above is allowed.",
    ),
    *("a < b", "x<5mg", "<b>Yes</b>", "<5 mg daily", "AT&T", "N/A means not applicable here.", "&lt;p&gt; opens"),
    *(
        '<img alt="Revenue rose by 12 %">',
        '<product name="kettle" price="12"/>',
        '{"price": 0}',
        '{"text": "It rains."}',
    ),
    *('["None", "It rains."]', "[1, 2]", "None " * 200 + "but this", "<p>None</p>" + "<br>" * 300 + "<p>It rains.</p>"),
    "<script>x()</script>It rains.",
]


@pytest.mark.parametrize("text", BLANK)
def test_what_shows_no_letter_digit_or_sign_is_blank(text: str) -> None:
    assert passage_skip(text) is PassageSkip.BLANK


@pytest.mark.parametrize("text", MARKUP)
def test_tags_comments_and_entities_without_text_are_markup(text: str) -> None:
    assert passage_skip(text) is PassageSkip.MARKUP


@pytest.mark.parametrize("text", PLACEHOLDER)
def test_what_programs_and_people_write_for_nothing_is_a_placeholder(text: str) -> None:
    assert passage_skip(text) is PassageSkip.PLACEHOLDER


@pytest.mark.parametrize("text", EVIDENCE)
def test_what_may_say_something_is_evidence(text: str) -> None:
    assert passage_skip(text) is None


def test_no_chunk_is_made_of_what_is_no_evidence() -> None:
    texts = ("None", "It rains.", "<p></p>", "\u200b", "It pours.")
    chunks = context_chunks([Passage(f"p{number}", text) for number, text in enumerate(texts)], 5)
    assert [chunk.passage for chunk in chunks] == [1, 4]


@pytest.mark.parametrize("text", ["", " ", "\u200b\ufeff", "\u3164"])
def test_an_answer_of_which_nothing_is_seen_is_empty(text: str) -> None:
    assert is_unseen(text)


def test_an_answer_of_signs_is_not_empty() -> None:
    assert not is_unseen("---")


HOSTILE = [
    ("<" * 200_000, PassageSkip.BLANK),
    ("&" * 200_000, PassageSkip.BLANK),
    ("[" * 200_000, PassageSkip.BLANK),
    ("<a " * 70_000, PassageSkip.MARKUP),
    ("<!--" * 50_000, PassageSkip.BLANK),
    ("<style" * 30_000, PassageSkip.MARKUP),
    ("&#0;" * 50_000, PassageSkip.MARKUP),
    ('{"a":' * 800, None),
    ("[" * 2_000 + '"a"' + "]" * 1_997, None),
]


@pytest.mark.parametrize(("text", "skip"), HOSTILE)
def test_hostile_markup_is_told_like_any_other(text: str, skip: PassageSkip | None) -> None:
    assert passage_skip(text) is skip
