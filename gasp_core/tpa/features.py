"""Sentence features: means of each source over the tokens of each part of speech."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gasp_core.tpa.sources import AnswerSources, Source
from gasp_core.tpa.tags import TAGS, Tagger, spacy_tagger, token_tags

FEATURE_NAMES = tuple(
    f"{tag.lower()}_{name}" for tag in TAGS for name in (*(source.name.lower() for source in Source), "tokens")
)


def tpa_features(answer: AnswerSources, tagger: Tagger | None = None) -> NDArray[np.float64]:
    """Give the features (sentences, FEATURE_NAMES) of an answer; rows of sentences without a score are NaN.

    For each tag the mean of each source and the number of tokens; zeros where the tag does not occur. ``tagger`` is
    spaCy's unless given. Raises ModelNotFound if that is not installed.
    """
    tags = np.array(token_tags(answer.answer, answer.token_spans, tagger or spacy_tagger()))
    features = np.full((len(answer.sentences), len(FEATURE_NAMES)), np.nan)
    for row, (tokens, skip) in enumerate(zip(answer.members, answer.skips, strict=True)):
        if skip is None:
            features[row] = _by_tag(answer.values[list(tokens)], tags[list(tokens)])
    return features


def _by_tag(values: NDArray[np.float64], tags: NDArray[np.str_]) -> NDArray[np.float64]:
    row = np.zeros((len(TAGS), len(Source) + 1))
    for at, tag in enumerate(TAGS):
        if (has_tag := tags == tag).any():
            row[at] = [*values[has_tag].mean(axis=0), has_tag.sum()]
    return row.ravel()
