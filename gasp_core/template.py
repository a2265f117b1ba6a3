"""The prompt around question and context. It is a parameter of the method, so its name is in the scorer identity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    r"""One layout: ``head | chunk … chunk | tail(question) | answer``.

    No context means that every chunk is removed, and with them the head unless ``keeps_head``. ``separator`` follows
    the last chunk of each passage. ``answer_prefix`` is put before the answer when that is tokenised, so that its
    first word is tokenised as a word inside a text. With ``spliced`` the prompt is tokenised as one string, once per
    variant; otherwise each segment is tokenised once and a removed chunk removes exactly its tokens.
    """

    name: str
    head: str
    separator: str
    tail: str
    answer_prefix: str
    spliced: bool = False
    keeps_head: bool = False

    def question_segment(self, question: str) -> str:
        """The text between the context and the answer."""
        return self.tail.format(question=question)


PLAIN = PromptTemplate(
    name="plain-1",
    head="Context:\n",
    separator="\n\n",
    tail="Question: {question}\n\nAnswer:",
    answer_prefix=" ",
)

# The prompt of the package gasp-rag 0.2, token for token, to compare with it and to take over its thresholds.
GASP_RAG = PromptTemplate(
    name="gasp-rag-0.2",
    head="Context:\n",
    separator="",
    tail="\n\nQuestion: {question}\n\nAnswer: ",
    answer_prefix="",
    spliced=True,
    keeps_head=True,
)
