"""A model with its settings, which finds the sentences of an answer that do not lean on their context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gasp_core.gasp_rag.detection import Detection, SentenceResult
from gasp_core.gasp_rag.items import Item, parse_item
from gasp_core.gasp_rag.sentence_scores import (
    NO_CHUNK,
    TWO_PASS_FEATURES,
    Feature,
    Scorer,
    SentenceScore,
    sentence_scores,
)
from gasp_core.grounding import AnswerGrounding, Chunk
from gasp_core.template import PLAIN, PromptTemplate

# Answers handed to the scorer at once. It batches by tokens itself; more would only hold more states in memory.
GROUP = 4


class GASP:
    """Finds the sentences of an answer that do not lean on their context. Not for use by several threads at once.

    ``k_chunks`` is into how many chunks a context given as one text is grouped. A sentence whose sensitivity is below
    ``threshold`` is flagged; None flags nothing. ``economical`` reads the answer with the whole context and with none,
    which is quicker and tells nothing about chunks. ``sensitivity_feature`` is one of the names in Feature; where
    ``economical`` does not compute it, it is ``gap``. The other settings are those of Scorer, here ``scorer``.

    Raises ValueError if a setting is out of range, ModelNotFound or ModelUnsupported if the model cannot be used.
    """

    def __init__(
        self,
        model_id: str,
        k_chunks: int = 5,
        threshold: float | None = None,
        economical: bool = False,  # noqa: FBT001, FBT002 - gasp-rag's signature
        sensitivity_feature: str = Feature.MAX_DROP.value,
        max_ctx_tokens: int = 1800,
        max_ans_tokens: int = 256,
        device: str | None = None,
        dtype: str | None = None,
        *,
        template: PromptTemplate = PLAIN,
    ) -> None:
        if sensitivity_feature not in list(Feature):
            raise ValueError(f"sensitivity_feature must be one of {', '.join(Feature)}, not {sensitivity_feature!r}")
        if k_chunks < 1:
            raise ValueError(f"k_chunks must be at least 1, not {k_chunks}")
        self.k_chunks = k_chunks
        self.threshold = threshold
        self.economical = economical
        falls_back = economical and sensitivity_feature not in TWO_PASS_FEATURES
        self.sensitivity_feature = str(Feature.GAP if falls_back else sensitivity_feature)
        self.scorer = Scorer(model_id, device, dtype, max_ctx_tokens, max_ans_tokens, template=template)

    def detect(
        self,
        context: str | Sequence[str] | None,
        answer: str | None,
        query: str | None = "",
        threshold: float | None = None,
    ) -> Detection:
        """Score every sentence of one answer. ``threshold`` goes before that of the detector.

        A context of one text is grouped into ``k_chunks``; the texts of a list are the chunks themselves, and
        ``supporting_chunk_index`` counts in that list. Raises ValueError for what is no text.
        """
        item = parse_item({"context": context, "answer": answer, "query": query})
        return self._detect([item], threshold)[0]

    def detect_batch(self, items: Iterable[Mapping[str, Any]], threshold: float | None = None) -> list[Detection]:
        """Score many answers, several at once; the results are in the order of ``items`` and do not depend on it.

        An item has ``answer``, ``context`` (or ``passages``) and, if there is one, ``query`` (or ``question``), as in
        the files of ``read_items``. Raises ValueError with the place of an item that does not, before any is scored.
        """
        parsed = [_parsed(number, item) for number, item in enumerate(items)]
        groups = [parsed[at : at + GROUP] for at in range(0, len(parsed), GROUP)]
        return [detection for group in groups for detection in self._detect(group, threshold)]

    def _detect(self, items: Sequence[Item], threshold: float | None) -> list[Detection]:
        """Score items together. Only those whose context is one text are grouped into chunks."""
        threshold = self.threshold if threshold is None else threshold
        groundings = {
            in_parts: iter(
                self.scorer.ground(
                    [item.exchange for item in items if item.in_parts is in_parts],
                    max_chunks=1 if in_parts else self.k_chunks,
                    leave_one_out=not self.economical,
                )
            )
            for in_parts in (False, True)
        }
        return [self._detection(item, next(groundings[item.in_parts]), threshold) for item in items]

    def _detection(self, item: Item, grounding: AnswerGrounding, threshold: float | None) -> Detection:
        return Detection(
            tuple(
                self._result(item, grounding.chunks, score, threshold)
                for score in sentence_scores(item.exchange, grounding)
            ),
            skip_reason=grounding.skip_reason,
            context_tokens_cut=grounding.truncation.context_tokens_cut,
            answer_tokens_cut=grounding.truncation.answer_tokens_cut,
        )

    def _result(
        self, item: Item, chunks: Sequence[Chunk], score: SentenceScore, threshold: float | None
    ) -> SentenceResult:
        features = score.features
        sensitivity = features[self.sensitivity_feature]
        supporting_index, supporting = _chunk(item, chunks, score.attributed_chunk)
        contradicting_index, contradicting = _chunk(item, chunks, score.contradicting_chunk)
        return SentenceResult(
            index=score.index,
            text=score.text,
            sensitivity=sensitivity,
            supporting_chunk_index=supporting_index,
            supporting_chunk=supporting,
            features=features,
            flagged=None if threshold is None or sensitivity is None else sensitivity < threshold,
            start=score.start,
            end=score.end,
            surprisal=score.surprisal,
            skip_reason=score.skip_reason,
            contradicting_chunk_index=contradicting_index,
            contradicting_chunk=contradicting,
        )


def _parsed(number: int, item: Mapping[str, Any]) -> Item:
    try:
        return parse_item(item)
    except ValueError as error:
        raise ValueError(f"item {number} {error}") from error


def _chunk(item: Item, chunks: Sequence[Chunk], chunk: int) -> tuple[int, str | None]:
    """The place of a chunk in the context as it was given, and its text."""
    if chunk == NO_CHUNK:
        return NO_CHUNK, None
    place = chunks[chunk]
    text = item.exchange.passages[place.passage].text[place.start : place.end]
    # A blank text in a list is no chunk, so the two numbers may differ.
    return place.passage if item.in_parts else chunk, text
