"""The fingerprint of a model in a folder: a hash of what decides its scores, and of nothing else.

Not of its files as they are: saving the same model with another version of transformers writes other bytes, and
thresholds and labels belong to a fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gasp_core.tokenizer import control_tokens
from gasp_core.weights import StoredTensor, stored_tensors, weight_files

# Of a tensor so much is read at so many places, or all of it if it is not larger. Samples, because reading 15 GB at
# every start would cost more than it tells; a fine-tuned model differs in nearly every tensor that it differs in.
PLACES, PLACE_BYTES = 8, 4_096

# Settings that a forward pass in evaluation mode does not know: who wrote the file and how, training, generation.
_UNDECISIVE = re.compile(
    r"transformers_version|_?name_or_path|architectures|auto_map|(torch_)?dtype|use_cache|initializer_range|return_dict"
    r"|output_\w+|problem_type|task_specific_params|finetuning_task|.*dropout\w*|.*_pdrop|\w+_token_ids?|_attn_\w+"
    r"|pretraining_tp|.*_version|is_encoder_decoder|tokenizer_class"
)

# Of many kinds, so that two tokenizers that cut it alike cut other texts alike, too.
_TEXT = (
    "The museum's hours: 9:00\u201318:30, doesn't open on Mondays.\n\n\tTickets cost"
    " \u20ac12.50  (under-10s: free)!\r\n"
    "Größe, naïve façade, Ærøskøbing; \u0401\u043b\u043a\u0430 \u0438 \u043c\u0451\u0434, 2024 \u0433."
    " \u0627\u0644\u0642\u0627\u0647\u0631\u0629 \u0661\u0662\u0663 \u0928\u092e\u0938\u094d\u0924\u0947"
    " \u6771\u4eac\u90fd\u306f\u96e8\u3067\u3059\u3002\ud55c\uad6d\uc5b4 \u0e44\u0e17\u0e22 \U0001f642"
    " \U0001f469\u200d\U0001f467"
    " e\u0301 \ufb01 \uff21\u00a0\u200b def f(x): return x**2  # {'a': [1, 2]} <b>HTML</b> https://example.org/?q=1&r=%20"
    " CamelCase snake_case 1234567"
)
_OWN_WORDS = 2_000
# How vocabularies write a blank.
_BLANK = re.compile("[\u0120\u2581]")


def fingerprint(folder: Path, config: Any, tokenizer: Any) -> str:  # noqa: ANN401 - transformers' own dynamic types
    """Name the model in a folder by its weights, the settings that decide what it computes, and how it cuts texts."""
    digest = hashlib.sha256()
    for part in (*_weights(folder), *_settings(config), *_cuts(tokenizer)):
        digest.update(part)
    return digest.hexdigest()


def _weights(folder: Path) -> Iterator[bytes]:
    """Every tensor by name, wherever it lies, with samples of its bytes."""
    tensors: dict[str, StoredTensor] = {}
    for path in weight_files(folder):
        tensors |= stored_tensors(path)
    for name, tensor in sorted(tensors.items()):
        yield f"{name} {tensor.dtype} {tensor.shape}\n".encode()
        yield from _samples(tensor)


def _samples(tensor: StoredTensor) -> Iterator[bytes]:
    size = tensor.end - tensor.start
    with tensor.path.open("rb") as file:
        if size <= PLACES * PLACE_BYTES:
            file.seek(tensor.start)
            yield file.read(size)
            return
        for place in range(PLACES):
            file.seek(tensor.start + (size - PLACE_BYTES) * place // (PLACES - 1))
            yield file.read(PLACE_BYTES)


def _settings(config: Any) -> Iterator[bytes]:  # noqa: ANN401 - as above
    """What config.json says and its family does not say anyway, in transformers' present words."""
    decisive = _decisive(config.to_dict(), _defaults(config))
    yield json.dumps([config.model_type, decisive], sort_keys=True, default=str).encode()


def _defaults(config: Any) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    try:
        defaults: Mapping[str, Any] = type(config)().to_dict()
    except Exception:  # noqa: BLE001 - a family that cannot be made of nothing has no defaults to leave out
        return {}
    return defaults


def _decisive(settings: Mapping[Any, Any], defaults: Mapping[Any, Any]) -> dict[str, Any]:
    found = {}
    for key, value in settings.items():
        name, usual = str(key), defaults.get(key)
        if _UNDECISIVE.fullmatch(name) or value == usual:
            continue
        if isinstance(value, dict):
            value = _decisive(value, usual if isinstance(usual, dict) else {})
        # A number may have been one of 32 bits on its way.
        found[name] = f"{value:.6g}" if isinstance(value, float) else value
    return found


def _cuts(tokenizer: Any) -> Iterator[bytes]:  # noqa: ANN401 - as above
    """The vocabulary of texts, and the ids of a text of many kinds and of words of the vocabulary."""
    backend = tokenizer.backend_tokenizer
    # Without control tokens: which of these there are beside those in use is up to transformers' version.
    control = control_tokens(backend)
    vocabulary = sorted((number, word) for word, number in backend.get_vocab().items() if word not in control)
    yield json.dumps(vocabulary).encode()
    own = "".join(word for _, word in vocabulary[:: max(1, len(vocabulary) // _OWN_WORDS)])
    own = _BLANK.sub(" ", own)
    yield json.dumps([backend.encode(text, add_special_tokens=False).ids for text in (_TEXT, own)]).encode()
    yield json.dumps(tokenizer("").input_ids).encode()
