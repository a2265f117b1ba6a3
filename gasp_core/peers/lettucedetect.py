"""The prompts of LettuceDetect, word by word as its models have learned them, in eight languages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

FILE = "lettucedetect.json"
ENGLISH = "en"
# As its makers call their models: lettucedect-210m-eurobert-de-v1.
_LANGUAGE = re.compile(r"-([a-z]{2})-v\d+$")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts in one language: with a question, without one, and what a passage is called in them."""

    language: str
    passage: str
    question: str
    summary: str

    def of(self, question: str, passages: Sequence[str]) -> str:
        """The prompt with these passages; a blank question is none."""
        lines = "\n".join(self.line(number, passage) for number, passage in enumerate(passages))
        if not question.strip():
            return Template(self.summary).substitute(text=lines)
        return Template(self.question).substitute(question=question, num_passages=len(passages), context=lines)

    def line(self, number: int, passage: str) -> str:
        """The line of the passage at that place, from 0 on."""
        return f"{self.passage} {number + 1}: {passage}"


def prompts_of(name: str) -> Prompts:
    """The prompts in the language that the model's name ends with (``-de-v1``), else in English."""
    file = resources.files(__package__) / FILE
    every = json.loads(file.read_text(encoding="utf-8"))
    named = _LANGUAGE.search(name)
    language = named[1] if named and named[1] in every else ENGLISH
    return Prompts(language, **every[language])
