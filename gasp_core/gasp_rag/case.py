"""A case: question, context and answer, with where the sentences and the chunks are. Needs no model."""

from __future__ import annotations

from dataclasses import dataclass

from gasp_core.grounding import Passage
from gasp_core.text.chunks import context_chunks
from gasp_core.text.sentences import split_answer

Span = tuple[int, int]  # half-open, in characters


@dataclass(frozen=True, slots=True)
class Case:
    """One exchange with a single context. Made by ``from_texts``, which keeps the texts as they are.

    ``sent_spans`` are half-open character spans that tile ``answer``, ``chunk_spans`` such spans of ``context``.
    """

    query: str
    context: str
    answer: str
    sent_spans: tuple[Span, ...] = ()
    chunk_spans: tuple[Span, ...] = ()

    @classmethod
    def from_texts(cls, context: str | None, answer: str | None, query: str | None = "", k_chunks: int = 5) -> Case:
        """Cut the answer into its sentences and the context into at most ``k_chunks`` chunks; None is an empty text.

        Raises ValueError if ``k_chunks`` is below 1.
        """
        context, answer = context or "", answer or ""
        return cls(query or "", context, answer, sentence_spans(answer), chunk_spans(context, k_chunks))

    @property
    def n_sentences(self) -> int:
        """How many units the answer has, those that will carry no score included."""
        return len(self.sent_spans)

    @property
    def n_chunks(self) -> int:
        """How many chunks the context has; 0 if it is blank."""
        return len(self.chunk_spans)

    def sentence(self, j: int) -> str:
        """The text of a sentence, with the whitespace behind it. Raises IndexError if there is no such one."""
        return self.answer[slice(*self.sent_spans[j])]

    def chunk(self, i: int) -> str:
        """The text of a chunk, with the whitespace behind it. Raises IndexError if there is no such one."""
        return self.context[slice(*self.chunk_spans[i])]


def sentence_spans(text: str) -> tuple[Span, ...]:
    """Give the sentences of a text as half-open character spans, in order.

    They tile the text: a heading, a code block, a row of a table are units of their own, and whitespace belongs to
    what stands before it. An empty text has none.
    """
    return tuple((sentence.start, sentence.end) for sentence in split_answer(text))


def chunk_spans(context: str, k: int) -> tuple[Span, ...]:
    """Cut a context between its sentences into ``min(k, sentences)`` half-open character spans of similar length.

    They tile the context; a blank one has none. Raises ValueError if ``k`` is below 1.
    """
    return tuple((chunk.start, chunk.end) for chunk in context_chunks([Passage("context", context)], k))
