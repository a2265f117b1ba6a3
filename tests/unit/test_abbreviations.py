"""Full stops that end no sentence, in several languages, and those like them that do."""

from __future__ import annotations

import pytest

from gasp_core.text.sentences import split_answer

WHOLE = [
    "Am 3. Oktober 1990 war es so weit.",
    "Der 2. Weltkrieg endete 1945.",
    "Im 19. Jahrhundert war das so.",
    "Die 5. Auflage ist da.",
    "Den 3. oktober 1990 var det slut.",
    "Nach § 3 Abs. 2 BGB gilt das.",
    "Das steht in Art. 5 Abs. 1 S. 2 GG.",
    "Das gilt z. B. Hunden, d. h. Tieren.",
    "Es sind Hunde bzw. Katzen.",
    "Er kostet ca. 5 Mio. Euro.",
    "Siehe Nr. 5 und vgl. Abb. 3 dazu.",
    "Voir art. 5 et p. 12 du code.",
    "M. Dupont et Mme Durand sont là.",
    "On voit p. ex. Paris.",
    "El Sr. García y la Sra. López viven aquí.",
    "Según el art. 5 núm. 3, pág. 12 del código.",
    "Es una fruta, p. ej. La manzana.",
    "डॉ. शर्मा आए।",
    "Es kostet रु. 500 dort.",
]
PARTED = [
    ("Sie ist in Klasse 5.", "Er nicht."),
    ("Er kam am 3.", "Danach ging er."),
    ("I am 3.", "Bob is 5."),
    ("Das war 1990.", "Sie ging."),
    ("Es waren 5 Mio.", "Das ist viel."),
    ("This is the max.", "It is 5."),
    ("It costs $5.", "In fact it is 6."),
    ("He likes art.", "She does not."),
    ("It is 5 mm.", "The other is 6."),
    ("ភ្លៀងធ្លាក់។", "ខ្ញុំទៅផ្ទះ។"),
    ("ཆར་པ་འབབ།", "ང་ཁྱིམ་དུ་འགྲོ།"),
    ("وہ گیا۔", "وہ آیا۔"),
    ("မိုးရွာသည်။", "ငါသွားသည်။"),
    ("ዝናብ ዘነበ።", "ወደ ቤት ሄድኩ።"),
    ("「雨だ。寒い。」と彼は言った。", "彼は去った。"),
]


def said(text: str) -> list[str]:
    return [text[unit.start : unit.end].strip() for unit in split_answer(text)]


@pytest.mark.parametrize("sentence", WHOLE)
def test_a_full_stop_within_a_sentence_ends_nothing(sentence: str) -> None:
    assert said(f"It rains. {sentence} Danach endet es.") == ["It rains.", sentence, "Danach endet es."]


@pytest.mark.parametrize(("first", "second"), PARTED)
def test_a_full_stop_at_its_end_ends_a_sentence(first: str, second: str) -> None:
    assert said(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(("first", "second"), PARTED[-6:])
def test_scripts_without_blanks_need_none_between_sentences(first: str, second: str) -> None:
    assert said(first + second) == [first, second]


@pytest.mark.parametrize(
    "citation",
    [
        *(
            "【4:0†policy.pdf】",
            "<sup>1</sup>",
            "[1](https://example.org/a.b?c=d)",
            "[^1]",
            "[doc1][doc2]",
            "(Passage 2)",
        ),
        *("[1](https://example.org/Rain_(weather))", "[Source: policy.pdf]", "</b><sup>[1]</sup>"),
    ],
)
@pytest.mark.parametrize("blank", ["", " "])
def test_a_citation_belongs_to_the_sentence_before_it(citation: str, blank: str) -> None:
    assert said(f"It rains.{blank}{citation} It pours.") == [f"It rains.{blank}{citation}", "It pours."]
    assert said(f"It rains{blank}{citation}. It pours.") == [f"It rains{blank}{citation}.", "It pours."]


def test_a_citation_without_a_blank_behind_it_belongs_there_too() -> None:
    assert said("It rains.【1】It pours.") == ["It rains.【1】", "It pours."]
    assert said("雨が降る。（文書2）彼は去った。") == ["雨が降る。（文書2）", "彼は去った。"]
    assert said("See [1](https://a.org/x?y. Z) for it. It pours.") == [
        "See [1](https://a.org/x?y. Z) for it.",
        "It pours.",
    ]
