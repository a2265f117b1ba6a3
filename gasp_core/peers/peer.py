"""What a peer is: another model that says how well the sentences of an answer are supported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gasp_core.grounding import Exchange, Sentence

# Of a revision so much is shown.
REVISION_CHARS = 12


class Peer(Protocol):
    """Another model, with the form in which it is asked."""

    @property
    def identity(self) -> str:
        """Name, revision and form: everything that its scores depend on beside the texts."""
        ...

    def support(self, exchange: Exchange, sentences: Sequence[Sentence]) -> list[float]:
        """How likely each of these sentences of the answer is to be supported, in [0, 1]; NaN where it cannot say."""
        ...


class PairModel(Protocol):
    """A model that reads premises and one hypothesis at a time."""

    @property
    def name(self) -> str:
        """Its name on the hub or that of its folder."""
        ...

    @property
    def revision(self) -> str:
        """Its commit, or the fingerprint of its folder."""
        ...

    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
        """How likely each hypothesis is to follow from the premises, in [0, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class PairPeer:
    """Each sentence is a hypothesis, and the passages are the premises. ``form`` names how the model is asked."""

    model: PairModel
    form: str

    @property
    def identity(self) -> str:
        """Name, revision and form."""
        return identity_of(self.model.name, self.model.revision, self.form)

    def support(self, exchange: Exchange, sentences: Sequence[Sentence]) -> list[float]:
        """By the model; the question is not read."""
        texts = [exchange.answer[sentence.start : sentence.end].strip() for sentence in sentences]
        return self.model.probabilities([passage.text for passage in exchange.passages], texts)


def identity_of(name: str, revision: str, form: str) -> str:
    """Name, revision and form as one text."""
    return f"{name}@{revision[:REVISION_CHARS]} {form}"
