"""What to run for one exchange: its prompt variants as token ids, its answer, and what does not fit the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from gasp_core.fitting import fitting
from gasp_core.grounding import Chunk, Exchange, Truncation
from gasp_core.template import PromptTemplate

if TYPE_CHECKING:
    from gasp_core.model import LanguageModel

Span = tuple[int, int]

# Which groups of chunks are taken out, for each prompt after the first two; given the groups that there are.
Removals = Callable[[Sequence[int]], Sequence[tuple[int, ...]]]


def no_removals(_groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Two passes only."""
    return []


def each_group(groups: Sequence[int]) -> list[tuple[int, ...]]:
    """Leave one out."""
    return [(group,) for group in groups]


# Retrieved contexts are not longer; what is beyond costs time that nobody waits for.
MAX_CONTEXT_TOKENS = 131_072


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds in tokens on what is read; None leaves only the model's window."""

    max_context_tokens: int | None = MAX_CONTEXT_TOKENS
    max_answer_tokens: int | None = None

    @property
    def marks(self) -> tuple[str, ...]:
        """What the identity of a scorer under these limits says of them; nothing of the usual ones."""
        context, answer = self.max_context_tokens, self.max_answer_tokens
        return (
            *([] if context == MAX_CONTEXT_TOKENS else [f"context-{context or 'all'}"]),
            *([] if answer is None else [f"answer-{answer}"]),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Prompts to score one answer under, for one window of its context.

    ``prompts[0]`` has the chunks of the window, ``prompts[1]`` none, and ``prompts[2 + i]`` lacks the chunks of the
    groups ``removals[i]``. Where ``hidden[n]`` names token spans, prompt n still has these chunks, but question and
    answer do not see them. ``context_end`` is where the question begins in ``prompts[0]``, in tokens. ``answer_ids``
    is the part of the answer that is scored; ``answer_spans`` covers the whole answer: one character span per token,
    in the coordinates of ``Exchange.answer``. ``chunks`` are the indices of the window's chunks.
    """

    prompts: tuple[list[int], ...]
    hidden: tuple[tuple[Span, ...], ...]
    removals: tuple[tuple[int, ...], ...]
    context_end: int
    answer_ids: list[int]
    answer_spans: list[Span]
    chunks: tuple[int, ...]
    truncation: Truncation


def plan_exchange(
    exchange: Exchange,
    chunks: Sequence[Chunk],
    *,
    model: LanguageModel,
    template: PromptTemplate,
    limits: Limits,
    removals: Removals = no_removals,
    masked: bool = False,
) -> tuple[Plan, ...]:
    """Lay the exchange out for scoring: a plan per window of context, one if it all fits the model's window.

    Nothing if the question leaves no room for context and answer. ``masked`` hides removed chunks instead of taking
    them out; not for a template that is spliced, whose chunks are not tokens of their own.
    """
    answer_ids, answer_spans = _encode_answer(exchange.answer, model, template)
    frame = _Frame(
        model=model,
        template=template,
        question=exchange.question,
        beginning=model.beginning(),
        head=model.encode(template.head).ids,
        tail=model.encode(template.question_segment(exchange.question)).ids,
    )
    room = model.window - len(frame.beginning) - len(frame.head) - len(frame.tail)
    if room < model.window // 4:
        return ()
    texts = _segment_texts(exchange, chunks, template)
    segments = [_Segment(number, text, model.encode(text).ids) for number, text in enumerate(texts)]
    context_tokens = sum(len(segment.ids) for segment in segments)
    answer_room = min(max(room // 2, room - context_tokens), limits.max_answer_tokens or room)
    scored_ids = answer_ids[:answer_room]
    kept = _leading(segments, limits.max_context_tokens or context_tokens)
    truncation = Truncation(
        context_tokens=context_tokens,
        context_tokens_cut=context_tokens - sum(len(segment.ids) for segment in kept),
        answer_tokens=len(answer_ids),
        answer_tokens_cut=len(answer_ids) - len(scored_ids),
    )
    plans = []
    for window in _windows(kept, room - len(scored_ids)):
        groups = [chunks[segment.chunk].group for segment in window]
        removed = tuple(removals(sorted(set(groups))))
        lacking = [[group in out for group in groups] for out in removed]
        full = frame.prompt(window)
        plans.append(
            Plan(
                prompts=(
                    full,
                    frame.prompt([]),
                    *(full if masked else frame.prompt(_without(window, out)) for out in lacking),
                ),
                hidden=((), (), *(frame.spans(window, out) if masked else () for out in lacking)),
                removals=removed,
                # The end of a spliced context may be one token with what follows; nobody asks for it there.
                context_end=len(full) - len(frame.tail),
                answer_ids=scored_ids,
                answer_spans=answer_spans,
                chunks=tuple(dict.fromkeys(segment.chunk for segment in window)),
                truncation=truncation,
            )
        )
    return tuple(plans)


@dataclass(frozen=True, slots=True)
class _Segment:
    """A chunk, or a piece of one that alone is longer than a window; ``text`` is None for a piece."""

    chunk: int
    text: str | None
    ids: list[int]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The fixed parts around the context."""

    model: LanguageModel
    template: PromptTemplate
    question: str
    beginning: list[int]
    head: list[int]
    tail: list[int]

    def prompt(self, segments: Sequence[_Segment]) -> list[int]:
        texts = [segment.text for segment in segments]
        if self.template.spliced and None not in texts:
            context = "".join(text for text in texts if text is not None)
            whole = self.template.head + context + self.template.question_segment(self.question)
            return self.beginning + self.model.encode(whole).ids
        head = self.head if segments or self.template.keeps_head else []
        return self.beginning + head + [token for segment in segments for token in segment.ids] + self.tail

    def spans(self, segments: Sequence[_Segment], wanted: Sequence[bool]) -> tuple[Span, ...]:
        """Where the wanted segments are in the full prompt, in tokens."""
        start = len(self.beginning) + len(self.head)
        places = pairwise(accumulate((len(segment.ids) for segment in segments), initial=start))
        return tuple(place for place, is_wanted in zip(places, wanted, strict=True) if is_wanted)


def _without(segments: Sequence[_Segment], out: Sequence[bool]) -> list[_Segment]:
    return [segment for segment, is_out in zip(segments, out, strict=True) if not is_out]


def _encode_answer(answer: str, model: LanguageModel, template: PromptTemplate) -> tuple[list[int], list[Span]]:
    """Tokenise the answer once; spans are clipped to the answer where a token holds the template's prefix."""
    body = answer.lstrip() if template.answer_prefix else answer
    shift = len(answer) - len(body) - len(template.answer_prefix)
    encoding = model.encode(template.answer_prefix + body)
    floor = len(answer) - len(body)
    spans = [(max(start + shift, floor), max(end + shift, floor)) for start, end in encoding.spans]
    return encoding.ids, spans


def _segment_texts(exchange: Exchange, chunks: Sequence[Chunk], template: PromptTemplate) -> list[str]:
    """Each chunk's text as it is tokenised. A separator follows the end of a passage."""
    texts = []
    for chunk in chunks:
        passage = exchange.passages[chunk.passage].text
        start, end = chunk.start, chunk.end
        if not template.spliced:
            # Blanks between two chunks open the second one: tokenizers glue a blank to the word after it.
            start, end = _before_blanks(passage, start), _before_blanks(passage, end)
        texts.append(passage[start:end] + (template.separator if chunk.end == len(passage) else ""))
    return texts


def _before_blanks(text: str, position: int) -> int:
    while 0 < position < len(text) and text[position - 1] == " ":
        position -= 1
    return position


def _leading(segments: Sequence[_Segment], room: int) -> list[_Segment]:
    """The leading whole segments that fit ``room`` tokens; the first one is cut only if it alone does not fit.

    Retrievers order by relevance, so the front is what the answer most likely rests on.
    """
    kept: list[_Segment] = []
    for segment in segments:
        if len(segment.ids) > room:
            return kept or [_Segment(segment.chunk, None, segment.ids[:room])]
        kept.append(segment)
        room -= len(segment.ids)
    return kept


def _windows(segments: Sequence[_Segment], room: int) -> Iterator[list[_Segment]]:
    """Whole segments in order, as many at a time as fit ``room`` tokens. One that is longer is cut into windows."""
    pieces = (piece for segment in segments for piece in _pieces(segment, room))
    return fitting(pieces, lambda piece: len(piece.ids), room)


def _pieces(segment: _Segment, room: int) -> Iterator[_Segment]:
    if len(segment.ids) <= room:
        yield segment
        return
    for start in range(0, len(segment.ids), room):
        yield _Segment(segment.chunk, None, segment.ids[start : start + room])
