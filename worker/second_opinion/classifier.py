"""Second opinions of a classifier that runs on the model's thread."""

from __future__ import annotations

from collections.abc import Sequence

from gasp_core.entailment import EntailmentModel
from worker.rules.opinion import Opinion, OpinionLabel

# How passages and sentence are put to it; another way is another verifier.
METHOD = "windows-2"
_REVISION_CHARS = 12


class Classifier:
    """Takes the sentence as the hypothesis and each window of each passage as a premise. The best window wins."""

    def __init__(self, model: EntailmentModel) -> None:
        self._model = model

    @property
    def verifier(self) -> str:
        """Name, revision and method."""
        return f"{self._model.name}@{self._model.revision[:_REVISION_CHARS]} {METHOD}"

    def judge(self, question: str, passages: Sequence[str], answer: str, sentence: str) -> Opinion:  # noqa: ARG002 - a classifier reads a pair of texts; the others are the interface's
        """Supported if that is at least as likely as not."""
        supported = self._model.probability(passages, sentence)
        return Opinion(
            OpinionLabel.SUPPORTED if supported >= 0.5 else OpinionLabel.UNSUPPORTED, 1.0 - supported, self.verifier
        )
