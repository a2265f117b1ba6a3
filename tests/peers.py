"""Tiny random models of the classes that others use for the same question: for logic, never for figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForTokenClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    ModernBertConfig,
    ModernBertForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
)

from tests.models import byte_level_tokenizer

# Larger than usual, so that a random model is sure of something.
SPREAD = 0.4
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": SPREAD,
}
# Their signatures are strict; that of a configuration depends on its family.
CONFIGS: dict[str, Any] = {
    "bert": BertConfig,
    "modernbert": ModernBertConfig,
    "roberta": RobertaConfig,
    "deberta": DebertaV2Config,
    "t5": T5Config,
}
T5_SMALL: dict[str, Any] = {
    "d_model": 16,
    "d_ff": 32,
    "d_kv": 8,
    "num_layers": 2,
    "num_heads": 2,
    "initializer_factor": 0.7,
}


def save_tagger(
    folder: Path, labels: Sequence[str] | None = None, *, family: str = "modernbert", positions: int = 2_048
) -> Path:
    """A token classifier of LettuceDetect's class, or BERT's; without ``labels`` it has two without a name."""
    tokenizer = _pairs(byte_level_tokenizer())
    shape = SMALL | _named(labels) | {"vocab_size": len(tokenizer), "max_position_embeddings": positions}
    marks = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": 0, "eos_token_id": 1}
    own = {"cls_token_id": 0, "sep_token_id": 1, "local_attention": 32, "initializer_cutoff_factor": 3.0}
    torch.manual_seed(7)
    if family == "bert":
        network: Any = BertForTokenClassification(CONFIGS["bert"](**shape, **marks))
    else:
        network = ModernBertForTokenClassification(CONFIGS["modernbert"](**shape, **marks, **own))
    return _saved(folder, network, tokenizer)


def save_sequence(
    folder: Path, labels: Sequence[str] | None = None, *, family: str = "roberta", positions: int = 1_024
) -> Path:
    """A sequence classifier of the classes of MiniCheck's; without ``labels`` it has two without a name."""
    tokenizer = _pairs(byte_level_tokenizer())
    shape = SMALL | _named(labels) | {"vocab_size": len(tokenizer), "max_position_embeddings": positions}
    shape["pad_token_id"] = tokenizer.pad_token_id
    torch.manual_seed(8)
    if family == "deberta":
        network: Any = DebertaV2ForSequenceClassification(
            CONFIGS["deberta"](**shape, relative_attention=True, position_biased_input=False, type_vocab_size=0)
        )
    else:
        network = RobertaForSequenceClassification(CONFIGS["roberta"](**shape, bos_token_id=0, eos_token_id=1))
    return _saved(folder, network, tokenizer)


def save_minicheck_text(folder: Path) -> Path:
    """A T5 that answers in text, with a head of its own as FLAN has it."""
    tokenizer = t5_tokenizer()
    torch.manual_seed(9)
    config = CONFIGS["t5"](vocab_size=len(tokenizer), decoder_start_token_id=0, tie_word_embeddings=False, **T5_SMALL)
    _saved(folder, T5ForConditionalGeneration(config), tokenizer)
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"] = torch.randn_like(weights["shared.weight"])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_hhem(folder: Path, foundation: Path) -> Path:
    """A model with the names of weights and the config.json of HHEM-2.1-Open, and what it is made from beside it."""
    tokenizer = t5_tokenizer()
    torch.manual_seed(10)
    config = CONFIGS["t5"](vocab_size=len(tokenizer), decoder_start_token_id=0, **T5_SMALL)
    _saved(foundation, T5ForTokenClassification(config), tokenizer)
    weights = {f"t5.{name}": tensor for name, tensor in load_file(foundation / "model.safetensors").items()}
    (foundation / "model.safetensors").unlink()
    folder.mkdir(parents=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    told = {
        "architectures": ["HHEMv2ForSequenceClassification"],
        "auto_map": {
            "AutoConfig": "configuration_hhem_v2.HHEMv2Config",
            "AutoModelForSequenceClassification": "modeling_hhem_v2.HHEMv2ForSequenceClassification",
        },
        "foundation": str(foundation),
        "id2label": {"0": "hallucinated", "1": "consistent"},
        "model_type": "HHEMv2Config",
    }
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def t5_tokenizer() -> Any:
    """A small tokenizer in the way of T5's: pieces with a mark for the blank before them, an end mark behind a text."""
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), ("▁1", -2.5), ("▁museum", -3.0)]
    pieces += [(letter, -4.0) for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:?/<>'é#"]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def _pairs(tokenizer: Any) -> Any:
    """The byte-level tokenizer with the marks of RoBERTa's around texts and pairs."""
    tokenizer.add_special_tokens({"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>"})
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


def _named(labels: Sequence[str] | None) -> dict[str, Any]:
    if labels is None:
        return {"num_labels": 2}
    return {"id2label": dict(enumerate(labels)), "label2id": {label: at for at, label in enumerate(labels)}}


def _saved(folder: Path, network: Any, tokenizer: Any) -> Path:
    network.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder
