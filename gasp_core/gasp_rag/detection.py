"""What was found in an answer, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gasp_core.gasp_rag.sentence_scores import NO_CHUNK
from gasp_core.grounding import AnswerSkip, SentenceSkip


@dataclass(frozen=True, slots=True)
class SentenceResult:
    """What was found for one sentence: the half-open character span ``[start, end)`` of the answer.

    ``sensitivity`` is its score by ``detector``: higher means that the sentence leans more on the context. It is in
    nats per token, but for ``fused``, ``fused-free`` and ``readout`` the log-odds of being grounded. ``flagged`` says
    whether it is below the threshold. Both are None for a sentence without a score, whose ``skip_reason`` says why;
    ``flagged`` is None also if there is no threshold. ``supporting_chunk`` is the text of the chunk that supports the
    sentence and ``supporting_chunk_index`` its place in the context, None and -1 if none is named or none was left out;
    ``supporting_chunk_indices`` are the places of all chunks that support it in each other's stead, and
    ``support_unlocated`` says that the context supports it, but no few chunks of it;
    ``contradicting_chunk`` is the one without which the sentence would be likelier, a candidate for a contradiction.
    ``features`` has every feature by name, None where it was not computed, and ``n_tokens``. ``surprisal`` is the mean
    -log p under the whole context, in nats. ``[worst_start, worst_end)`` are the words of the sentence that are
    grounded least, as a character span of the answer, and ``worst_text`` what stands there; None without features.
    """

    index: int
    text: str
    sensitivity: float | None
    supporting_chunk_index: int
    supporting_chunk: str | None
    features: dict[str, float | None]
    flagged: bool | None = None
    start: int = 0
    end: int = 0
    surprisal: float | None = None
    skip_reason: SentenceSkip | None = None
    contradicting_chunk_index: int = NO_CHUNK
    contradicting_chunk: str | None = None
    detector: str | None = None
    supporting_chunk_indices: list[int] = field(default_factory=list)
    support_unlocated: bool = False
    worst_start: int | None = None
    worst_end: int | None = None
    worst_text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, ready for JSON; ``features`` is a dict of its own."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found in one answer: a result per sentence, in order.

    ``skip_reason`` says why no sentence has a score, if so. The tokens that were not read, because of a limit or of
    the model's window, are counted in ``context_tokens_cut`` and ``answer_tokens_cut``. ``language`` is that of the
    answer as a tag (BCP 47), ``und`` if nothing tells it; ``language_supported`` says whether its words can be compared
    with those of the context.
    """

    sentences: Sequence[SentenceResult]
    skip_reason: AnswerSkip | None = None
    context_tokens_cut: int = 0
    answer_tokens_cut: int = 0
    language: str | None = None
    language_supported: bool | None = None

    def __iter__(self) -> Iterator[SentenceResult]:
        return iter(self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)

    def flagged(self) -> list[SentenceResult]:
        """The sentences below the threshold; none if there is no threshold."""
        return [sentence for sentence in self.sentences if sentence.flagged]

    def to_records(self) -> list[dict[str, Any]]:
        """Every sentence as a dict, those without a score included."""
        return [sentence.to_dict() for sentence in self.sentences]

    def summary(self) -> dict[str, float | None]:
        """``n_sentences``, ``n_flagged``, ``mean_sensitivity`` and ``min_sensitivity``.

        Mean and minimum are over the sentences with a score, and None if there is none.
        """
        known = [sentence.sensitivity for sentence in self.sentences if sentence.sensitivity is not None]
        return {
            "n_sentences": len(self.sentences),
            "n_flagged": len(self.flagged()),
            "mean_sensitivity": sum(known) / len(known) if known else None,
            "min_sensitivity": min(known, default=None),
        }
