"""Which kind of model a peer is, as its own config.json says, and loading it as that."""

from __future__ import annotations

from typing import Any

from gasp_core.classifiers import is_known_type, read_config
from gasp_core.entailment import load_entailment_model
from gasp_core.errors import ModelUnsupported
from gasp_core.peers.peer import PairPeer, Peer
from gasp_core.peers.prompted import HHEM_TYPES, load_hhem, load_minicheck, load_minicheck_text
from gasp_core.peers.tagger import UNNAMED_LABELS, load_tagger

KIND = "a classifier of what is supported"
KNOWN = (
    "a token classifier (…ForTokenClassification), a sequence classifier (…ForSequenceClassification), MiniCheck's T5"
    " (T5ForConditionalGeneration) or HHEM-2.1-Open"
)


def load_peer(name: str, *, device: str = "auto") -> Peer:
    """Load another model by hub name or local folder; ``device`` as in ``gasp_core.model.load_model``.

    A token classifier is asked as LettuceDetect, a sequence classifier with a label for support as an NLI model or
    cross-encoder, one with two labels without names and a T5 that answers in text as MiniCheck, and HHEM-2.1-Open as
    itself. Raises ModelNotFound or ModelUnsupported, each saying what to do: also for a model of another kind, and for
    one that needs code of its own.
    """
    config = read_config(name, KIND)
    if config.get("model_type") in HHEM_TYPES:
        return PairPeer(load_hhem(name, config, device=device), "hhem-1")
    if not is_known_type(config.get("model_type")):
        brings = (
            "needs code of its own, which is never run" if config.get("auto_map") else "is of no type that is known"
        )
        raise ModelUnsupported(name, f"it {brings}; choose {KNOWN}")
    architectures = config.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else "nothing"
    if architecture.endswith("ForTokenClassification"):
        return load_tagger(name, device=device)
    if architecture.endswith("ForSequenceClassification"):
        if _labels(config) == UNNAMED_LABELS:
            return PairPeer(load_minicheck(name, device=device), "minicheck-1")
        return PairPeer(load_entailment_model(name, device=device), "nli-1")
    if architecture == "T5ForConditionalGeneration":
        return PairPeer(load_minicheck_text(name, device=device), "minicheck-1")
    raise ModelUnsupported(name, f"its config.json calls it {architecture[:100]}, which is not {KIND}; choose {KNOWN}")


def _labels(config: dict[str, Any]) -> list[str]:
    """Its labels in lower case. Where it names none there are two."""
    named = config.get("id2label")
    return [str(label).lower() for label in named.values()] if isinstance(named, dict) and named else UNNAMED_LABELS
