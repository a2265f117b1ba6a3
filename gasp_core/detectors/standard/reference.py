"""The reference set: exchanges of several kinds, lengths and languages, invented for this, that every scorer can read.

Its answers mix what the passages say with what they do not, about as answers of pipelines do.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from gasp_core.detectors.detector import Figures
from gasp_core.grounding import Exchange, Passage

# Raised whenever the file changes: it is part of the identity of what a worker stores.
VERSION = "ref-1"
FILE = "reference.v1.jsonl"
# Of the packaged model in float32; tests/acceptance/test_packaged_model.py measures them anew.
PACKAGED_FIGURES: Figures = {
    "jsd_no_context": (0.1704, 0.0885),
    "gap": (1.3217, 0.9568),
    "length": (2.8920, 0.5513),
}


@cache
def reference_exchanges() -> tuple[Exchange, ...]:
    """The exchanges that come with the package."""
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    return tuple(_exchange(**json.loads(line)) for line in text.splitlines())


def _exchange(question: str, passages: list[str], answer: str) -> Exchange:
    return Exchange(question, tuple(Passage(str(place), text) for place, text in enumerate(passages)), answer)
