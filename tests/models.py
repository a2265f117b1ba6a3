"""Tiny randomly initialised models of real families, with a tokenizer of our own: for logic, never for figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertLMHeadModel,
    BloomConfig,
    BloomForCausalLM,
    DeepseekV32Config,
    DeepseekV32ForCausalLM,
    DogeConfig,
    DogeForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    GlmMoeDsaConfig,
    GlmMoeDsaForCausalLM,
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
    latent: dict[str, Any] = {
        "num_key_value_heads": 4,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "index_topk": 32,
        "index_n_heads": 2,
        "index_head_dim": 16,
    }
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
        # Of these the states of a text depend on its whole length, and so on padding.
        "phi3-longrope": lambda: Phi3ForCausalLM(
            Phi3Config(
                **shape,
                pad_token_id=0,
                original_max_position_embeddings=40,
                rope_parameters={
                    "rope_type": "longrope",
                    "rope_theta": 10_000.0,
                    "short_factor": [1.0] * 4,
                    "long_factor": [4.0] * 4,
                },
            )
        ),
        "doge": lambda: DogeForCausalLM(DogeConfig(**shape, keep_window_size=32)),
        "deepseek-v32": lambda: DeepseekV32ForCausalLM(DeepseekV32Config(**shape | latent)),
        "glm-dsa": lambda: GlmMoeDsaForCausalLM(GlmMoeDsaConfig(**shape | latent)),
        # It reads in both directions, although transformers makes a causal model of it.
        "bert": lambda: BertLMHeadModel(
            BertConfig(**{name: value for name, value in shape.items() if "key_value" not in name})
        ),
        "bloom": lambda: BloomForCausalLM(BloomConfig(**small, n_layer=2, n_head=4)),
        "mamba": lambda: MambaForCausalLM(MambaConfig(**small, num_hidden_layers=2)),
    }
    return makers[family]()
