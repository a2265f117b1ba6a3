"""Entailment: how likely a text is to follow from another, by a sequence classifier (an NLI model or cross-encoder).

Loads safetensors weights only and runs no code that comes with a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor

from gasp_core.classifiers import Head, clean, load_classifier
from gasp_core.errors import ModelUnsupported

# Such models are trained on short premises; what is longer is read in windows that overlap.
WINDOW_TOKENS = 512
OVERLAP_TOKENS = 64
# Of longer premises the windows behind these are not read.
MAX_WINDOWS = 32
BATCH_WINDOWS = 8

# What the label of support is called. Of one logit without a name, more means support: so cross-encoders are made.
SUPPORT_LABELS = {"entailment", "entail", "entailed", "entails", "supported", "supports", "support", "consistent"}
UNNAMED_LABEL = "label_0"


@dataclass(frozen=True, slots=True)
class EntailmentModel:
    """A loaded sequence classifier in evaluation mode. ``support`` is the index of the logit that means support.

    ``window`` is how many tokens it reads at once: premise, hypothesis and its own marks together.
    """

    name: str
    revision: str
    device: torch.device
    window: int
    support: int
    network: Any
    tokenizer: Any

    @torch.inference_mode()
    def probability(self, premises: Sequence[str], hypothesis: str) -> float:
        """How likely the hypothesis is to follow from one of the premises, in [0, 1]: from the best window of all.

        0 without premises. The first MAX_WINDOWS windows are read, and of a hypothesis what fits half a window.
        """
        asked = self._cut(clean(hypothesis))
        every = chain.from_iterable(self._windows(clean(premise), asked) for premise in premises)
        windows = islice(every, MAX_WINDOWS)
        best = 0.0
        while batch := list(islice(windows, BATCH_WINDOWS)):
            best = max(best, float(self._support(batch).max()))
        return best

    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
        """How likely each hypothesis is to follow from one of the premises."""
        return [self.probability(premises, hypothesis) for hypothesis in hypotheses]

    def _windows(self, premise: str, hypothesis: str) -> Iterator[dict[str, list[int]]]:
        """The pair as the model reads it, once for each window of the premise."""
        encoded = self.tokenizer(
            premise,
            hypothesis,
            truncation="only_first",
            max_length=self.window,
            stride=min(OVERLAP_TOKENS, self.window // 8),
            return_overflowing_tokens=True,
        )
        wanted = set(self.tokenizer.model_input_names) & set(encoded)
        for number in range(len(encoded["input_ids"])):
            yield {name: encoded[name][number] for name in wanted}

    def _support(self, windows: Sequence[dict[str, list[int]]]) -> Tensor:
        """The probability of support (B,) of each window."""
        padded = self.tokenizer.pad(windows, padding=True, return_tensors="pt").to(self.device)
        logits: Tensor = self.network(**padded).logits.float()
        if logits.shape[-1] == 1:
            return logits[:, 0].sigmoid()
        return logits.softmax(-1)[:, self.support]

    def _cut(self, hypothesis: str) -> str:
        spans = self.tokenizer.backend_tokenizer.encode(hypothesis, add_special_tokens=False).offsets
        most = self.window // 2
        return hypothesis if len(spans) <= most else hypothesis[: spans[most - 1][1]]


def load_entailment_model(name: str, *, device: str = "auto", revision: str | None = None) -> EntailmentModel:
    """Load a classifier in float32 by hub name or local folder; ``device`` as in ``gasp_core.model.load_model``.

    Raises ModelNotFound or ModelUnsupported, each saying what to do: also where the labels in the model's
    configuration do not say which of them means that the premise supports the hypothesis.
    """
    classifier = load_classifier(name, Head.SEQUENCE, device=device, revision=revision)
    return EntailmentModel(
        name=classifier.name,
        revision=classifier.revision,
        device=classifier.device,
        window=classifier.window(WINDOW_TOKENS),
        support=support_index(name, classifier.network.config.id2label),
        network=classifier.network,
        tokenizer=classifier.tokenizer,
    )


def support_index(name: str, labels: dict[int, str]) -> int:
    """The index of the label that means support. Raises ModelUnsupported if it is not exactly one of SUPPORT_LABELS.

    A single logit without a name is taken to rise with support.
    """
    called = {index: str(label).strip().lower() for index, label in labels.items()}
    if list(called.values()) == [UNNAMED_LABEL]:
        return next(iter(called))
    found = [index for index, label in called.items() if label in SUPPORT_LABELS]
    if len(found) != 1:
        shown = ", ".join(str(label) for label in labels.values())
        message = f"its labels ({shown}) do not say which one means support; name one entailment in id2label"
        raise ModelUnsupported(name, message)
    return found[0]
