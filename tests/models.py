"""Tiny randomly initialised models of real families, with a tokenizer of our own: for logic, never for figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

WINDOW_TOKENS = 256

TEXT = (
    "The museum opens at nine and closes at six. Tickets cost twelve euros; children under ten pay nothing. "
    "Yes. Yes. No. No. Context: Question: Answer: Refunds are possible within 30 days. Dogs must stay outside.\n\n"
)


def byte_level_tokenizer(*, bos: bool = False) -> Any:
    """A small byte-level BPE: blanks belong to the word after them, as in GPT-2, Llama 3 and Qwen."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 4, trainer)
    if bos:
        from tokenizers.processors import TemplateProcessing

        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    wrap: Any = PreTrainedTokenizerFast
    return wrap(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def save_model(folder: Path, family: str = "llama", *, bos: bool = False) -> Path:
    """Write a tiny model of a family as safetensors with its tokenizer; gives the folder."""
    tokenizer = byte_level_tokenizer(bos=bos)
    torch.manual_seed(3)
    network = _network(family, len(tokenizer))
    network.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def _network(family: str, vocabulary: int) -> Any:
    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": WINDOW_TOKENS,
        # Larger than usual, so that a random model is sure of something.
        "initializer_range": 0.3,
    }
    heads: dict[str, Any] = {"head_dim": 8}
    small: dict[str, Any] = {"vocab_size": vocabulary, "initializer_range": 0.3, "hidden_size": 32}
    makers: dict[str, Callable[[], Any]] = {
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**shape)),
        "llama-dynamic": lambda: LlamaForCausalLM(
            LlamaConfig(**shape, rope_parameters={"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0})
        ),
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**shape)),
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**shape, **heads)),
        "mistral": lambda: MistralForCausalLM(MistralConfig(**shape, sliding_window=None)),
        "mistral-sliding": lambda: MistralForCausalLM(MistralConfig(**shape, sliding_window=64)),
        "phi3": lambda: Phi3ForCausalLM(Phi3Config(**shape, pad_token_id=0)),
        "gemma": lambda: GemmaForCausalLM(GemmaConfig(**shape, **heads)),
        "gemma2": lambda: Gemma2ForCausalLM(
            Gemma2Config(**shape, **heads, sliding_window=64, final_logit_softcapping=5.0)
        ),
        "gpt2": lambda: GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_embd=32,
                n_layer=2,
                n_head=4,
                n_positions=WINDOW_TOKENS,
                initializer_range=0.3,
                bos_token_id=0,
                eos_token_id=1,
            )
        ),
        "bloom": lambda: BloomForCausalLM(BloomConfig(**small, n_layer=2, n_head=4)),
        "mamba": lambda: MambaForCausalLM(MambaConfig(**small, num_hidden_layers=2)),
    }
    return makers[family]()
