"""Classifiers that read premise and claim as one text of a fixed form: MiniCheck's three models, HHEM-2.1-Open.

All premises together are one document. It is read in windows of whole sentences, and the window that supports the
claim best decides, as MiniCheck does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gasp_core.classifiers import Classifier, Head, clean, load_classifier, load_config
from gasp_core.errors import ModelUnsupported
from gasp_core.text.sentences import split_answer
from gasp_core.tokenizer import control_tokens

# Of longer documents the windows behind these are not read.
MAX_WINDOWS = 32
# Windows are read together up to so many tokens: attention takes memory by the square of a window.
BATCH_TOKENS = 4_096
# The tokens of sentences together may be some more than those of each.
SPARE_TOKENS = 8

# What makes the logits (B, 2), of no support and of support, from texts (B, S).
Read: TypeAlias = Callable[[Any, Any], Tensor]

HHEM_TYPES = ("HHEMv2Config", "HHEMv2")
_HHEM_FOUNDATION = "google/flan-t5-base"
_HHEM_PROMPT = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {text1}\n\nHypothesis: {text2}"
_HHEM_LIMIT_TOKENS = 2_048


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with places for a premise and, behind it, a claim."""

    before: str
    between: str
    after: str = ""

    def of(self, premise: str, claim: str) -> str:
        """The text with both."""
        return f"{self.before}{premise}{self.between}{claim}{self.after}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read at once: ``window`` tokens of everything, and so many tokens and words of the document."""

    window: int
    premise_tokens: int
    premise_words: float = float("inf")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the document that is not divided, with its numbers of tokens and of words between blanks."""

    text: str
    tokens: int
    words: int


@dataclass(frozen=True, slots=True)
class PromptedModel:
    """A classifier with its prompt."""

    classifier: Classifier
    prompt: Prompt
    limits: Limits
    read: Read
    control: re.Pattern[str]

    @property
    def name(self) -> str:
        """That of the classifier."""
        return self.classifier.name

    @property
    def revision(self) -> str:
        """That of the classifier."""
        return self.classifier.revision

    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
        """How likely each hypothesis is to be supported by the premises together: by the best window.

        0 without premises. The first MAX_WINDOWS windows are read, and of a hypothesis what fits a quarter of one.
        """
        parts = list(self._parts("\n".join(self._plain(premise) for premise in premises)))
        return [self._probability(parts, self._cut(self._plain(one), self._most_of_claim)) for one in hypotheses]

    def _probability(self, parts: Sequence[Part], claim: str) -> float:
        windows = islice(self._windows(parts, self._budget(len(self.classifier.spans(claim)))), MAX_WINDOWS)
        at_once = max(1, BATCH_TOKENS // self.limits.window)
        best = 0.0
        while batch := list(islice(windows, at_once)):
            best = max(best, float(self._support([self.prompt.of(text, claim) for text in batch]).max()))
        return best

    @torch.inference_mode()
    def _support(self, texts: Sequence[str]) -> Tensor:
        """The probability of support (B,) of each text."""
        batch = self.classifier.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self.limits.window,
            # Only the prompt has such tokens, of which it is made: _plain has taken them out of the rest.
            split_special_tokens=False,
            return_tensors="pt",
        ).to(self.classifier.device)
        return self.read(self.classifier.network, batch).float().softmax(-1)[:, 1]

    def _windows(self, parts: Sequence[Part], most_tokens: int) -> Iterator[str]:
        """The document in whole parts, as many to a window as it takes."""
        window: list[str] = []
        filled = 0.0
        for part in parts:
            share = max(part.tokens / most_tokens, part.words / self.limits.premise_words)
            if window and filled + share > 1:
                yield "".join(window).strip()
                window, filled = [], 0.0
            window.append(part.text)
            filled += share
        if window:
            yield "".join(window).strip()

    def _parts(self, document: str) -> Iterator[Part]:
        """The sentences of the document; one that is longer than any window is cut."""
        if not document.strip():
            return
        most = self._budget(self._most_of_claim)
        for sentence in split_answer(document):
            text = document[sentence.start : sentence.end]
            spans = self.classifier.spans(text)
            cuts = [0, *(spans[at][0] for at in range(most, len(spans), most)), len(text)]
            for number, (start, end) in enumerate(pairwise(cuts)):
                piece = text[start:end]
                yield Part(piece, min(most, len(spans) - number * most), len(piece.split()))

    @property
    def _most_of_claim(self) -> int:
        return max(1, self.limits.window // 4)

    def _budget(self, claim_tokens: int) -> int:
        """How many tokens of the document fit beside a claim."""
        around = len(self.classifier.tokenizer(self.prompt.of("", ""), split_special_tokens=False).input_ids)
        return max(1, min(self.limits.premise_tokens, self.limits.window - around - claim_tokens - SPARE_TOKENS))

    def _cut(self, text: str, most: int) -> str:
        spans = self.classifier.spans(text)
        return text if len(spans) <= most else text[: spans[most - 1][1]]

    def _plain(self, text: str) -> str:
        """The text without what the tokenizer would take for control tokens."""
        return self.control.sub(" ", clean(text))


def load_minicheck(name: str, *, device: str) -> PromptedModel:
    """MiniCheck's classifier of two classes (RoBERTa, DeBERTa): document, end mark and claim as one text.

    Raises ModelNotFound or ModelUnsupported.
    """
    classifier = load_classifier(name, Head.SEQUENCE, device=device)
    _require_two_labels(name, classifier)
    mark = classifier.tokenizer.eos_token or classifier.tokenizer.sep_token
    if mark is None:
        raise ModelUnsupported(name, "its tokenizer has no token that could stand between document and claim")
    limits = Limits(classifier.window(512), premise_tokens=400)
    return _prompted(classifier, Prompt("", mark), limits, lambda network, batch: network(**batch).logits)


def load_minicheck_text(name: str, *, device: str) -> PromptedModel:
    """MiniCheck's T5, which answers 1 where the document supports the claim and 0 where it does not.

    Raises ModelNotFound or ModelUnsupported.
    """
    classifier = load_classifier(name, Head.TEXT, device=device)
    tokenizer, start = classifier.tokenizer, classifier.network.config.decoder_start_token_id
    answers = [tokenizer(word, add_special_tokens=False).input_ids[:1] for word in ("0", "1")]
    if tokenizer.eos_token is None or start is None or not all(answers) or answers[0] == answers[1]:
        raise ModelUnsupported(name, "its tokenizer is not T5's, by which MiniCheck's answers 0 and 1 are read")
    ids = torch.tensor([one for (one,) in answers], device=classifier.device)

    def read(network: Any, batch: Any) -> Tensor:  # noqa: ANN401 - transformers' own dynamic types
        begun = torch.full((len(batch["input_ids"]), 1), start, device=ids.device)
        logits: Tensor = network(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], decoder_input_ids=begun
        ).logits
        return logits[:, 0, ids]

    limits = Limits(2_048, premise_tokens=2_048, premise_words=500)
    return _prompted(classifier, Prompt("predict: ", tokenizer.eos_token), limits, read)


def load_hhem(name: str, config: dict[str, Any], *, device: str) -> PromptedModel:
    """HHEM-2.1-Open: a T5 encoder that classifies its first token. Its own code is not needed, and never run.

    ``config`` is its config.json. Settings and tokenizer are those of the model it was made from, by ``foundation``.
    Raises ModelNotFound or ModelUnsupported.
    """
    foundation = str(config.get("foundation") or _HHEM_FOUNDATION)
    settings = load_config(foundation, "the model that HHEM is made from")
    if settings.model_type != "t5":
        raise ModelUnsupported(name, f"it is made from {foundation}, which is not T5; HHEM-2.1-Open is made from T5")
    classifier = load_classifier(
        name,
        Head.TOKEN,
        device=device,
        tokenizer_name=foundation,
        config=settings,
        key_mapping={r"^t5\.": ""},
    )
    _require_two_labels(name, classifier)
    before, between, after = _places(name, str(config.get("prompt") or _HHEM_PROMPT))
    limits = Limits(_HHEM_LIMIT_TOKENS, premise_tokens=_HHEM_LIMIT_TOKENS)
    return _prompted(
        classifier, Prompt(before, between, after), limits, lambda network, batch: network(**batch).logits[:, 0]
    )


def _places(name: str, prompt: str) -> tuple[str, str, str]:
    before, premise, rest = prompt.partition("{text1}")
    between, claim, after = rest.partition("{text2}")
    if not premise or not claim:
        raise ModelUnsupported(name, "the prompt in its config.json has no places {text1} and {text2}, in this order")
    return before, between, after


def _require_two_labels(name: str, classifier: Classifier) -> None:
    if (labels := classifier.network.config.num_labels) != 2:
        raise ModelUnsupported(name, f"it has {labels} labels, and two are wanted: unsupported and supported")


def _prompted(classifier: Classifier, prompt: Prompt, limits: Limits, read: Read) -> PromptedModel:
    control = sorted(control_tokens(classifier.tokenizer.backend_tokenizer), key=len, reverse=True)
    return PromptedModel(classifier, prompt, limits, read, re.compile("|".join(map(re.escape, control)) or "(?!)"))
