"""What was found in a row's answer as rows of results, with the labels that the row brought along."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gasp_core.evaluation.data import answer_of
from gasp_core.evaluation.labels import sentence_labels
from gasp_core.gasp_rag.detection import Detection, SentenceResult
from gasp_core.text.sentences import split_answer


def records(number: int, row: Mapping[str, Any], detection: Detection) -> list[dict[str, Any]]:
    """A record per sentence of the row with that number.

    ``label`` is there if the row has one, which then is that of every sentence, or if it is one of labelled answers
    with labels within its answer: 1 for an unsupported sentence, 0 for another, None for one that nobody labelled.
    """
    labels = _labels(row, len(detection))
    found = [_record(number, detection, result) for result in detection]
    return [record | label for record, label in zip(found, labels, strict=True)]


def _labels(row: Mapping[str, Any], sentences: int) -> list[dict[str, Any]]:
    if "label" in row:
        return [{"label": row["label"]}] * sentences
    try:
        answer = answer_of(row)
    except ValueError:  # a row of something else, which need not have labels
        return [{}] * sentences
    if answer.label is not None:
        return [{}] * sentences
    found = sentence_labels(answer, split_answer(answer.exchange.answer))
    return [{"label": None if one.unsupported is None else int(one.unsupported)} for one in found]


def _record(number: int, detection: Detection, result: SentenceResult) -> dict[str, Any]:
    record = {
        "item_id": number,
        "sent_index": result.index,
        "sentence": result.text,
        "start": result.start,
        "end": result.end,
        "sensitivity": result.sensitivity,
        "flagged": result.flagged,
        "supporting_chunk": result.supporting_chunk,
        "supporting_chunk_indices": result.supporting_chunk_indices,
        "support_unlocated": result.support_unlocated,
        "contradicting_chunk": result.contradicting_chunk,
        "worst_start": result.worst_start,
        "worst_end": result.worst_end,
        "worst_text": result.worst_text,
        "skip_reason": result.skip_reason,
        "context_truncated": detection.context_tokens_cut > 0,
        "answer_truncated": detection.answer_tokens_cut > 0,
        "n_tokens": result.features["n_tokens"],
        "surprisal": result.surprisal,
        "detector": result.detector,
        "language": detection.language,
        "language_supported": detection.language_supported,
    }
    return record | {f"feat_{name}": value for name, value in result.features.items()}
