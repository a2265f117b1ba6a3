"""Token classifiers that mark what of an answer is not supported, such as LettuceDetect.

The form is LettuceDetect's: its prompt with question and numbered passages as the first text, the answer as the
second. Passages that do not fit together are read in groups of whole ones, and a token's probability of being
unsupported is the highest of all groups.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import torch

from gasp_core.classifiers import Classifier, Head, clean, load_classifier
from gasp_core.errors import ModelUnsupported
from gasp_core.features import assign_tokens
from gasp_core.grounding import Exchange, Sentence
from gasp_core.peers.lettucedetect import Prompts, prompts_of
from gasp_core.peers.peer import identity_of
from gasp_core.text.sentences import split_answer

FORM = "lettucedetect-1"
# LettuceDetect reads so much at once, also of models that could read more.
WINDOW_TOKENS = 4_096
# Of more passages the groups behind these are not read.
MAX_GROUPS = 32

UNSUPPORTED_LABELS = {
    *("hallucinated", "hallucination", "unsupported", "not_supported", "ungrounded", "not_grounded"),
    *("inconsistent", "contradiction", "contradicted", "conflict", "fabricated", "fabrication", "baseless"),
    *("unsupported_addition", "fabricated_reference", "evident_conflict", "subtle_conflict"),
    *("evident_baseless_info", "subtle_baseless_info"),
}
SUPPORTED_LABELS = {"o", "supported", "support", "grounded", "consistent", "faithful", "not_hallucinated"}
UNNAMED_LABELS = ["label_0", "label_1"]


@dataclass(frozen=True, slots=True)
class Tagger:
    """A token classifier. ``unsupported`` are the indices of the labels that mean it; ``window`` is in tokens."""

    classifier: Classifier
    prompts: Prompts
    unsupported: tuple[int, ...]
    window: int

    @property
    def identity(self) -> str:
        """Name, revision and form."""
        return identity_of(self.classifier.name, self.classifier.revision, f"{FORM}-{self.prompts.language}")

    def support(self, exchange: Exchange, sentences: Sequence[Sentence]) -> list[float]:
        """1 less the highest probability of a token of the sentence to be unsupported; NaN where there is no token.

        A token counts for the sentence that holds its first visible character, one of blanks for none. The answer is
        read whole, or in parts of half a window; of passages the first MAX_GROUPS groups.
        """
        answer = clean(exchange.answer)
        highest: dict[int, float] = {}  # by where the token's first visible character is
        for start, end in self._answer_parts(answer):
            part = answer[start:end]
            for (first, last), value in self._probabilities(exchange, part).items():
                if visible := part[first:last].lstrip():
                    at = start + last - len(visible)
                    highest[at] = max(value, highest.get(at, 0.0))
        places = sorted(highest)
        within = (places[bisect_left(places, one.start) : bisect_left(places, one.end)] for one in sentences)
        return [1.0 - max((highest[at] for at in found), default=math.nan) for found in within]

    def _probabilities(self, exchange: Exchange, part: str) -> dict[tuple[int, int], float]:
        """The highest probability of each token of the part of an answer, by its span."""
        highest: dict[tuple[int, int], float] = {}
        for prompt in islice(self._prompts(exchange, part), MAX_GROUPS):
            for span, value in self._read(prompt, part):
                highest[span] = max(value, highest.get(span, 0.0))
        return highest

    @torch.inference_mode()
    def _read(self, prompt: str, part: str) -> list[tuple[tuple[int, int], float]]:
        """The spans of the part's tokens with their probabilities of being unsupported."""
        read = self.classifier.tokenizer(
            prompt, part, truncation="only_first", max_length=self.window, return_offsets_mapping=True
        )
        texts = {name: torch.tensor([read[name]]) for name in ("input_ids", "attention_mask")}
        placed = {name: ids.to(self.classifier.device) for name, ids in texts.items()}
        logits = self.classifier.network(**placed).logits[0].float()  # (S, labels)
        values = logits.softmax(-1)[:, list(self.unsupported)].sum(-1).tolist()
        return [
            ((start, end), min(1.0, value))
            for side, (start, end), value in zip(read.sequence_ids(0), read["offset_mapping"], values, strict=True)
            if side == 1 and start < end
        ]

    def _prompts(self, exchange: Exchange, part: str) -> Iterator[str]:
        """The prompts of the groups of passages that each fit beside the part of the answer."""
        question = self._cut(clean(exchange.question), self.window // 4)
        marks = self.classifier.tokenizer.num_special_tokens_to_add(pair=True)
        budget = self.window - self._tokens(part) - self._tokens(self.prompts.of(question, ())) - marks
        group: list[str] = []
        filled = 0
        for text in self._pieces(exchange, max(1, budget)):
            # Each stands on a line of its own, behind its number.
            size = self._tokens(self.prompts.line(len(group), text)) + 1
            if group and filled + size > budget:
                yield self.prompts.of(question, group)
                group, filled = [], 0
            group.append(text)
            filled += size
        if group:
            yield self.prompts.of(question, group)

    def _pieces(self, exchange: Exchange, most: int) -> Iterator[str]:
        """The passages; one that does not fit by itself is cut."""
        room = max(1, most - self._tokens(self.prompts.line(99, "")) - 1)
        for passage in exchange.passages:
            text = clean(passage.text)
            if not text.strip():
                continue
            spans = self.classifier.spans(text)
            cuts = [0, *(spans[at][0] for at in range(room, len(spans), room)), len(text)]
            yield from (text[start:end] for start, end in pairwise(cuts))

    def _answer_parts(self, answer: str) -> list[tuple[int, int]]:
        """The spans that an answer is read in: whole sentences, as many as fit half a window."""
        most = max(1, self.window // 2)
        spans = self.classifier.spans(answer)
        if len(spans) <= most:
            return [(0, len(answer))]
        cuts, filled = [0], 0
        for tokens in assign_tokens(answer, split_answer(answer), spans):
            for at in range(0, len(tokens), most):
                piece = tokens[at : at + most]
                if filled and filled + len(piece) > most:
                    cuts.append(spans[piece[0]][0])
                    filled = 0
                filled += len(piece)
        return list(pairwise([*cuts, len(answer)]))

    def _tokens(self, text: str) -> int:
        return len(self.classifier.spans(text))

    def _cut(self, text: str, most: int) -> str:
        spans = self.classifier.spans(text)
        return text if len(spans) <= most else text[: spans[most - 1][1]]


def load_tagger(name: str, *, device: str) -> Tagger:
    """Load a token classifier. Raises ModelNotFound or ModelUnsupported, also if its labels do not tell what they mean.

    ``device`` as in ``gasp_core.model.load_model``.
    """
    classifier = load_classifier(name, Head.TOKEN, device=device)
    return Tagger(
        classifier=classifier,
        prompts=prompts_of(classifier.name),
        unsupported=unsupported_labels(name, classifier.network.config.id2label),
        window=classifier.window(WINDOW_TOKENS),
    )


def unsupported_labels(name: str, labels: Mapping[int, str]) -> tuple[int, ...]:
    """The indices of the labels that mean unsupported. Of two without a name it is the second, as LettuceDetect has it.

    Raises ModelUnsupported unless each label is one of UNSUPPORTED_LABELS or SUPPORTED_LABELS, and there are both.
    """
    called = {index: _called(label) for index, label in labels.items()}
    if list(called.values()) == UNNAMED_LABELS:
        return (1,)
    found = tuple(index for index, label in called.items() if label in UNSUPPORTED_LABELS)
    if not 0 < len(found) < len(called) or not set(called.values()) <= UNSUPPORTED_LABELS | SUPPORTED_LABELS:
        shown = ", ".join(str(label) for label in labels.values())[:200]
        message = f"its labels ({shown}) do not say which mean that a word of the answer is not supported; name them"
        raise ModelUnsupported(name, f"{message} supported and hallucinated in id2label, if they mean that")
    return found


def _called(label: str) -> str:
    """The label in one form, without the sign that it begins or goes on."""
    name = "_".join(str(label).strip().lower().replace("-", " ").replace("_", " ").split())
    return name[2:] if name[:2] in ("b_", "i_") else name
