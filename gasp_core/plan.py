"""What to run for one exchange: its prompt variants as token ids, its answer, and what does not fit the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gasp_core.grounding import Chunk, Exchange, Truncation
from gasp_core.model import LanguageModel
from gasp_core.template import PromptTemplate


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds in tokens on what is read; None leaves only the model's window."""

    max_context_tokens: int | None = None
    max_answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Prompts to score one answer under.

    ``prompts[0]`` has the whole context, ``prompts[1]`` none, and ``prompts[2 + i]`` lacks the chunks of
    ``groups[i]``. The first ``trunk_tokens`` of ``prompts[0]`` are the context and what stands before it: what other
    answers to the same context share. ``answer_ids`` is the part of the answer that is scored; ``answer_spans`` covers
    the whole answer: one character span per token, in the coordinates of ``Exchange.answer``. ``kept_chunks`` are the
    indices of the chunks that the full prompt holds.
    """

    prompts: tuple[list[int], ...]
    groups: tuple[int, ...]
    trunk_tokens: int
    answer_ids: list[int]
    answer_spans: list[tuple[int, int]]
    kept_chunks: tuple[int, ...]
    truncation: Truncation


def plan_exchange(
    exchange: Exchange,
    chunks: Sequence[Chunk],
    *,
    model: LanguageModel,
    template: PromptTemplate,
    limits: Limits,
    leave_one_out: bool,
) -> Plan | None:
    """Lay the exchange out for scoring, or give None if the question leaves no room for context and answer."""
    answer_ids, answer_spans = _encode_answer(exchange.answer, model, template)
    beginning, head = model.beginning(), model.encode(template.head).ids
    tail = model.encode(template.question_segment(exchange.question)).ids
    room = model.window - len(beginning) - len(head) - len(tail)
    if room < model.window // 4:
        return None
    texts = _segment_texts(exchange, chunks, template)
    segments = [model.encode(text).ids for text in texts]
    context_tokens = sum(map(len, segments))
    answer_room = min(max(room // 2, room - context_tokens), limits.max_answer_tokens or room)
    scored_ids = answer_ids[:answer_room]
    context_room = min(room - len(scored_ids), limits.max_context_tokens or room)
    kept = _fit(segments, context_room)
    groups = tuple(sorted({chunks[index].group for index in range(len(kept))})) if leave_one_out else ()
    frame = _Frame(model, template, beginning, head, tail, exchange.question)
    cut = sum(map(len, kept)) < context_tokens

    def prompt(indices: Sequence[int]) -> list[int]:
        if template.spliced and not cut:
            return frame.spliced("".join(texts[index] for index in indices))
        return frame.segmented([kept[index] for index in indices])

    every = range(len(kept))
    full = prompt(every)
    return Plan(
        prompts=(
            full,
            prompt(()),
            *(prompt([index for index in every if chunks[index].group != group]) for group in groups),
        ),
        groups=groups,
        # Where the prompt is spliced the question cannot be told apart by tokens; then it belongs to the trunk.
        trunk_tokens=len(full) - (1 if template.spliced else len(tail)),
        answer_ids=scored_ids,
        answer_spans=answer_spans,
        kept_chunks=tuple(every),
        truncation=Truncation(
            context_tokens=context_tokens,
            context_tokens_cut=context_tokens - sum(map(len, kept)),
            answer_tokens=len(answer_ids),
            answer_tokens_cut=len(answer_ids) - len(scored_ids),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """The fixed parts around the context."""

    model: LanguageModel
    template: PromptTemplate
    beginning: list[int]
    head: list[int]
    tail: list[int]
    question: str

    def segmented(self, segments: Sequence[list[int]]) -> list[int]:
        head = self.head if segments or self.template.keeps_head else []
        return self.beginning + head + [token for segment in segments for token in segment] + self.tail

    def spliced(self, context: str) -> list[int]:
        text = self.template.head + context + self.template.question_segment(self.question)
        return self.beginning + self.model.encode(text).ids


def _encode_answer(
    answer: str, model: LanguageModel, template: PromptTemplate
) -> tuple[list[int], list[tuple[int, int]]]:
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


def _fit(segments: Sequence[list[int]], room: int) -> list[list[int]]:
    """The leading whole segments that fit ``room`` tokens; the first one is cut only if it alone does not fit.

    Retrievers order by relevance, so the front is what the answer most likely rests on.
    """
    kept: list[list[int]] = []
    for segment in segments:
        if len(segment) > room:
            return kept or [segment[:room]]
        kept.append(segment)
        room -= len(segment)
    return kept
