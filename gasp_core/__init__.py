"""Grounding scores for the sentences of a fixed answer: text and tensors in, frozen values out.

The names below are the whole public interface of the package gasp-rag 0.2. Each is imported when it is first asked
for, and torch not before a model is loaded, so that importing gasp_core costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gasp_core.gasp_rag.case import Case, chunk_spans, sentence_spans
    from gasp_core.gasp_rag.detection import Detection, SentenceResult
    from gasp_core.gasp_rag.gasp import GASP
    from gasp_core.gasp_rag.items import read_items, write_records
    from gasp_core.gasp_rag.metrics import evaluate, pr_auc, roc_auc, threshold_metrics
    from gasp_core.gasp_rag.sentence_scores import Scorer, SentenceScore
    from gasp_core.version import __version__

__all__ = [
    "GASP",
    "Case",
    "Detection",
    "Scorer",
    "SentenceResult",
    "SentenceScore",
    "__version__",
    "chunk_spans",
    "evaluate",
    "pr_auc",
    "read_items",
    "roc_auc",
    "sentence_spans",
    "threshold_metrics",
    "write_records",
]

# A type checker reads the imports above. It must not see __getattr__, or it would take any name for one of ours.
if not TYPE_CHECKING:
    _MODULES = {
        "gasp_rag.case": ("Case", "chunk_spans", "sentence_spans"),
        "gasp_rag.detection": ("Detection", "SentenceResult"),
        "gasp_rag.gasp": ("GASP",),
        "gasp_rag.items": ("read_items", "write_records"),
        "gasp_rag.metrics": ("evaluate", "pr_auc", "roc_auc", "threshold_metrics"),
        "gasp_rag.sentence_scores": ("Scorer", "SentenceScore"),
        "version": ("__version__",),
    }
    _HOMES = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Import a public name from its module (PEP 562). Raises AttributeError for any other."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value  # the next look-up does not come here
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
