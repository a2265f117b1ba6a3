"""A model with its settings, which finds the sentences of an answer that do not lean on their context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gasp_core.detectors.detector import AnswerEvidence, Detector, Need
from gasp_core.detectors.registry import AUTO, best_for, detector_named
from gasp_core.detectors.standard.standardise import standardised
from gasp_core.errors import DetectorError
from gasp_core.gasp_rag.detection import Detection, SentenceResult
from gasp_core.gasp_rag.items import Item, parse_item
from gasp_core.gasp_rag.parameters import UNNAMED, Parameters, Unnamed, only_named
from gasp_core.gasp_rag.sentence_scores import NO_CHUNK, Scorer, SentenceScore, sentence_scores
from gasp_core.grounding import AnswerGrounding, Chunk, SentenceSkip
from gasp_core.template import PromptTemplate
from gasp_core.text.lexical import told_language_of

if TYPE_CHECKING:  # torch, which those who only look at results can spare
    from gasp_core.plan import Limits

# Answers handed to the scorer at once. It batches by tokens itself; more would only hold more states in memory.
GROUP = 4


@dataclass(frozen=True, slots=True)
class _ScoringRule:
    """By what the sentences of a call are scored and flagged. ``limits`` go before those of the scorer, if any."""

    detector: Detector
    threshold: float | None
    limits: Limits | None


class GASP:
    """Finds the sentences of an answer that do not lean on their context. Not for use by several threads at once.

    ``detector`` names what makes the sensitivity of a sentence, its score: any detector that does not have to learn
    first, or ``auto`` for the best that the model admits, which is ``readout`` for the packaged model and
    ``fused-free`` for others. For a model that they were not fitted to, ``fused`` and ``fused-free`` read a reference
    set of 36 exchanges first, once. ``k_chunks`` (5) is into how many chunks a context given as one text is grouped. A
    sentence whose sensitivity is below ``threshold`` is flagged; None flags nothing, and not to name it takes the first
    bound of the detector, if it has one. ``economical`` reads the answer with the whole context and with none, which is
    quicker and tells nothing about chunks. At most ``max_ctx_tokens`` of the context and ``max_ans_tokens`` of the
    answer are read; not to name them leaves the model's window, in as many windows as the context takes. ``template``
    is the prompt.

    To name one of these parameters, even with its default, or a threshold in a call, without naming a detector gives
    gasp-rag's numbers: sensitivity is then ``sensitivity_feature`` (``max_drop``), one of the names in Feature, or the
    gap where ``economical`` does not compute it; ``threshold`` is None, ``max_ctx_tokens`` 1800 and ``max_ans_tokens``
    256 where they are not named. To name none of them is ``auto``. ``model_id``, ``device`` and ``dtype``, as for
    Scorer (here ``scorer``), change nothing of that.

    Raises ValueError if a setting is out of range, DetectorError (one, too) if there is no such detector, it has to
    learn first, reads what a grounding does not tell or needs what ``economical`` leaves out, ModelNotFound or
    ModelUnsupported if the model cannot be used or the detector was not fitted to it.
    """

    def __init__(
        self,
        model_id: str,
        k_chunks: int | Unnamed = UNNAMED,
        threshold: float | Unnamed | None = UNNAMED,
        economical: bool | Unnamed = UNNAMED,  # noqa: FBT001 - gasp-rag's signature
        sensitivity_feature: str | Unnamed = UNNAMED,
        max_ctx_tokens: int | Unnamed = UNNAMED,
        max_ans_tokens: int | Unnamed = UNNAMED,
        device: str | None = None,
        dtype: str | None = None,
        *,
        template: PromptTemplate | Unnamed = UNNAMED,
        detector: str | None = None,
    ) -> None:
        named = only_named(
            k_chunks=k_chunks,
            threshold=threshold,
            economical=economical,
            sensitivity_feature=sensitivity_feature,
            max_ctx_tokens=max_ctx_tokens,
            max_ans_tokens=max_ans_tokens,
            template=template,
        )
        own = Parameters(**named)
        wanted = None if detector is None else _wanted(detector, named)
        self.k_chunks = own.k_chunks
        self.economical = own.economical
        self.sensitivity_feature = own.feature
        self.scorer = Scorer(model_id, device, dtype, own.max_ctx_tokens, own.max_ans_tokens, template=own.template)
        self.threshold = own.threshold
        self._by_default = detector is None and not named
        self._detector: Detector | None = None
        self._limits: Limits | None = None
        if detector is not None or self._by_default:
            self._score_by(wanted or best_for(self.scorer.identity), named)

    @property
    def detector(self) -> str:
        """The name of the detector that makes the sensitivities."""
        return self._rule(None).detector.name

    def detect(
        self,
        context: str | Sequence[str] | None,
        answer: str | None,
        query: str | None = "",
        threshold: float | None = None,
    ) -> Detection:
        """Score every sentence of one answer. ``threshold`` goes before that of this object.

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

    def _score_by(self, detector: Detector, named: Mapping[str, Any]) -> None:
        """Take a detector, with its first bound and without limits, but for those that were named."""
        self._limits = self.scorer.limits(named.get("max_ctx_tokens"), named.get("max_ans_tokens"))
        self._detector = standardised(detector, self.scorer.grounding_scorer(self._limits))
        if taps := detector.taps():
            self.scorer = self.scorer.reading(taps)
        if "threshold" not in named and detector.bounds is not None:
            self.threshold = detector.bounds.flag_below

    def _detect(self, items: Sequence[Item], threshold: float | None) -> list[Detection]:
        """Score items together. Only those whose context is one text are grouped into chunks."""
        rule = self._rule(threshold)
        groundings = {
            in_parts: iter(
                self.scorer.ground(
                    [item.exchange for item in items if item.in_parts is in_parts],
                    max_chunks=1 if in_parts else self.k_chunks,
                    leave_one_out=not self.economical,
                    limits=rule.limits,
                )
            )
            for in_parts in (False, True)
        }
        return [_detection(item, next(groundings[item.in_parts]), rule) for item in items]

    def _rule(self, threshold: float | None) -> _ScoringRule:
        """The rule for a call with that threshold, which is on gasp-rag's scale if nobody named a detector."""
        by = self.threshold if threshold is None else threshold
        if self._detector is None or (self._by_default and threshold is not None):
            return _ScoringRule(detector_named(self.sensitivity_feature), by, None)
        return _ScoringRule(self._detector, by, self._limits)


def _wanted(name: str, named: Mapping[str, Any]) -> Detector | None:
    """The detector of that name, None for auto. Raises DetectorError if it is none to use under these parameters."""
    if "sensitivity_feature" in named:
        raise DetectorError(name, "a detector and a feature are two names for what gives the score; name one of them")
    if name == AUTO:
        return None
    detector = detector_named(name)
    detector.require_ready()
    if not detector.needs.in_grounding:
        raise DetectorError(name, f"{name} reads what a grounding does not tell; `gasp eval` measures it")
    if named.get("economical") and detector.needs is Need.LEAVE_ONE_OUT:
        raise DetectorError(name, f"{name} needs leave-one-out, which is left out if it is to be economical")
    return detector


def _detection(item: Item, grounding: AnswerGrounding, rule: _ScoringRule) -> Detection:
    features = rule.detector.read(AnswerEvidence.of(item.exchange, grounding))
    language = told_language_of(item.exchange)
    results = zip(sentence_scores(item.exchange, grounding), features, rule.detector.scored(features), strict=True)
    return Detection(
        tuple(
            _result(item, grounding.chunks, score, None if score.skip_reason else sensitivity, one.reason, rule)
            for score, one, sensitivity in results
        ),
        skip_reason=grounding.skip_reason,
        context_tokens_cut=grounding.truncation.context_tokens_cut,
        answer_tokens_cut=grounding.truncation.answer_tokens_cut,
        language=language.tag,
        language_supported=language.is_supported,
    )


def _result(
    item: Item,
    chunks: Sequence[Chunk],
    score: SentenceScore,
    sensitivity: float | None,
    reason: str | None,
    rule: _ScoringRule,
) -> SentenceResult:
    threshold = rule.threshold
    supporting_index, supporting = _chunk(item, chunks, score.attributed_chunk)
    contradicting_index, contradicting = _chunk(item, chunks, score.contradicting_chunk)
    worst_start, worst_end = score.worst or (None, None)
    return SentenceResult(
        index=score.index,
        text=score.text,
        sensitivity=sensitivity,
        supporting_chunk_index=supporting_index,
        supporting_chunk=supporting,
        features=score.features,
        flagged=None if threshold is None or sensitivity is None else sensitivity < threshold,
        start=score.start,
        end=score.end,
        surprisal=score.surprisal,
        skip_reason=score.skip_reason or (SentenceSkip(reason) if reason in list(SentenceSkip) else None),
        contradicting_chunk_index=contradicting_index,
        contradicting_chunk=contradicting,
        detector=rule.detector.name,
        supporting_chunk_indices=[_chunk(item, chunks, chunk)[0] for chunk in score.supporting_chunks],
        support_unlocated=score.unlocated,
        worst_start=worst_start,
        worst_end=worst_end,
        worst_text=None if score.worst is None else item.exchange.answer[worst_start:worst_end],
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
