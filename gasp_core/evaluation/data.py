"""Labelled answers to measure on: one JSON object a line, with labels over the answer.

A line has ``query``, ``passages``, ``answer``, ``id``, ``source_id`` and one of: ``labels``, the unsupported character
spans (``start``, ``end``, maybe ``type``); ``sentence_labels``, spans with ``label`` 1 for unsupported and 0 for not;
``answer_label``, where the answer was judged as a whole. Of several the last one counts for the answer, and the first
one for its sentences. ``model`` names the generator. Offsets count the characters of the answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gasp_core.errors import InputError
from gasp_core.gasp_rag.items import parse_item, read_rows
from gasp_core.grounding import Exchange

LABEL_NAMES = ("labels", "sentence_labels", "answer_label")


@dataclass(frozen=True, slots=True)
class LabelSpan:
    """A labelled half-open character span ``[start, end)`` of the answer; ``kind`` names its type, if it has one.

    ``weight`` is how many sentences it stands for where some were likelier to be asked about than others.
    """

    start: int
    end: int
    unsupported: bool
    kind: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One answer with what people said of it. A kind of label that was not given is None.

    ``source`` is what answers are grouped by whenever they are split or resampled.
    """

    id: str
    source: str
    exchange: Exchange
    generator: str | None = None
    spans: tuple[LabelSpan, ...] | None = None
    sentences: tuple[LabelSpan, ...] | None = None
    label: bool | None = None

    @property
    def unsupported(self) -> bool:
        """Whether the answer as a whole is: as it was judged, else if anything in it is."""
        if self.label is not None:
            return self.label
        return any(span.unsupported for span in (self.spans if self.spans is not None else self.sentences) or ())


def is_labelled_answers(path: str | Path) -> bool:
    """Whether the file is one of labelled answers rather than of results: whether any row has both.

    Raises InputError if it cannot be read.
    """
    return any("answer" in row and any(name in row for name in LABEL_NAMES) for _, row in read_rows(path))


def read_answers(path: str | Path) -> list[LabelledAnswer]:
    """Read a ``.jsonl`` file of labelled answers. Raises InputError with the line of what is wrong, quoting nothing."""
    answers = []
    lines: dict[str, int] = {}
    for line, row in read_rows(path):
        try:
            answer = answer_of(row)
        except ValueError as error:
            raise InputError(str(path), line, str(error)) from error
        if answer.id in lines:
            raise InputError(str(path), line, f"has the id of line {lines[answer.id]}")
        lines[answer.id] = line
        answers.append(answer)
    if not answers:
        raise InputError(str(path), 0, "has no answer")
    if len({answer.label is None for answer in answers}) > 1:
        raise InputError(str(path), 0, "has an 'answer_label' on some lines and none on others")
    return answers


def sample(answers: Sequence[LabelledAnswer], limit: int | None, seed: int) -> list[LabelledAnswer]:
    """At most ``limit`` answers, drawn at random, in the order of the file; all if it is None."""
    if limit is None or limit >= len(answers):
        return list(answers)
    drawn = random.Random(seed).sample(range(len(answers)), limit)  # noqa: S311 - no secret
    return [answers[at] for at in sorted(drawn)]


def answer_of(row: Mapping[str, Any]) -> LabelledAnswer:
    """The labelled answer that a row describes. Raises ValueError, which does not quote the row, if it is none."""
    exchange = parse_item(row).exchange
    if not any(row.get(name) is not None for name in LABEL_NAMES):
        raise ValueError(f"needs one of {', '.join(LABEL_NAMES)}")
    return LabelledAnswer(
        id=_name(row, "id"),
        source=_name(row, "source_id"),
        exchange=exchange,
        generator=_name(row, "model") if row.get("model") is not None else None,
        spans=_spans(row, "labels", exchange.answer),
        sentences=_spans(row, "sentence_labels", exchange.answer),
        label=None if row.get("answer_label") is None else _flag(row["answer_label"], "answer_label"),
    )


def _name(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"needs {key!r}: a text or a whole number")
    return str(value)


def _spans(row: Mapping[str, Any], key: str, answer: str) -> tuple[LabelSpan, ...] | None:
    found = row.get(key)
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(span, dict) for span in found):
        raise ValueError(f"has {key!r} that is no list of objects")
    return tuple(_span(span, key, answer) for span in found)


def _span(span: Mapping[str, Any], key: str, answer: str) -> LabelSpan:
    start, end = (_whole(span.get(bound)) for bound in ("start", "end"))
    if not 0 <= start < end <= len(answer):
        raise ValueError(f"has a span in {key!r} that is not within the answer")
    kind = span.get("type")
    return LabelSpan(
        start=start,
        end=end,
        unsupported=_flag(span.get("label"), key) if key == "sentence_labels" else True,
        kind=kind if isinstance(kind, str) else None,
    )


def _whole(value: object) -> int:
    """The number; -1 for what is no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, int | float) or value not in (0, 1):
        raise ValueError(f"has a label in {key!r} that is not 0 or 1")
    return bool(value)
