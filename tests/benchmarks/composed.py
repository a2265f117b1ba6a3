"""Exchanges of a wanted size, composed of the project's samples: the same ones for everybody."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gasp_core.grounding import Exchange, Passage
from gasp_core.model import LanguageModel
from gasp_core.text.sentences import split_answer

SAMPLES = Path("worker/samples.jsonl")


def composed_exchanges(
    model: LanguageModel, *, count: int, passages: int, passage_tokens: int, answer_tokens: int
) -> list[Exchange]:
    """Make ``count`` exchanges of whole sentences: ``passages`` of about ``passage_tokens``, and an answer.

    An answer joins those of two samples; their own passages are in the context, filled up with those of others.
    """
    rows = [json.loads(line) for line in SAMPLES.read_text(encoding="utf-8").splitlines()]
    return [_exchange(model, rows, number, passages, passage_tokens, answer_tokens) for number in range(count)]


def _exchange(
    model: LanguageModel, rows: Sequence[dict[str, Any]], number: int, passages: int, tokens: int, answer_tokens: int
) -> Exchange:
    others = random.Random(number).sample(rows, len(rows))
    first = rows[number % len(rows)]
    second = next(row for row in others if row is not first)
    ordered = [first, second, *(row for row in others if row is not first and row is not second)]
    texts = [passage["text"] for row in ordered for passage in row["passages"]]
    sentences = _endless([part for text in texts for part in _sentences(text)], number)
    parts = [_fill(model, sentences, tokens) for _ in range(passages)]
    random.Random(number).shuffle(parts)
    answer = _fill(model, iter([*_sentences(first["answer"]), *_sentences(second["answer"])]), answer_tokens)
    return Exchange(first["question"], tuple(Passage(f"p{place}", text) for place, text in enumerate(parts, 1)), answer)


def _endless(sentences: list[str], seed: int) -> Iterator[str]:
    """The sentences in order, then again and again in another one, so that long passages are not alike."""
    generator = random.Random(seed)
    while True:
        yield from sentences
        sentences = generator.sample(sentences, len(sentences))


def _fill(model: LanguageModel, sentences: Iterator[str], tokens: int) -> str:
    """Sentences until there are as many tokens."""
    text = ""
    while len(model.encode(text).ids) < tokens:
        following = "".join(islice(sentences, 1))
        if not following:
            break
        text = f"{text} {following}".strip()
    return text


def _sentences(text: str) -> list[str]:
    return [text[one.start : one.end].strip() for one in split_answer(text)]
