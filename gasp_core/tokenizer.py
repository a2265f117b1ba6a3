"""The tokenizer of a model, loaded so that text stays text.

A passage that says ``</s>`` says four characters. A tokenizer reads such words as control tokens, by which a model
knows where a text or a turn ends, unless it is told not to; and then whoever writes a passage moves the scores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set
from typing import Any

from tokenizers import AddedToken, models

from gasp_core.errors import ModelUnsupported
from gasp_core.loading import named_faults

SURROGATE = re.compile("[\ud800-\udfff]")
"""What no tokenizer knows."""

# Of a private plane: what a tokenizer makes of it is what it makes of anything unknown.
_UNKNOWN = "\U000f1234"

# No characters, so that no text has them before such a word.
_UNREACHED = "\U0010fffe\U0010ffff"

_WORD = re.compile(r"[^\W_]")


def load_tokenizer(name: str, revision: str | None, kind: str = "a causal language model") -> Any:  # noqa: ANN401 - transformers' own dynamic type
    """The fast tokenizer of a model, which reads no control token out of a text.

    Raises ModelNotFound, and ModelUnsupported if there is none that gives offsets and keeps text and control apart.
    """
    from transformers import AutoTokenizer  # seconds to import, which --help need not wait for

    with named_faults(name, kind):
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
        if not getattr(tokenizer, "is_fast", False):
            reason = "its tokenizer gives no character offsets; choose a model with a fast tokenizer"
            raise ModelUnsupported(name, reason)
        _read_as_text(tokenizer)
        if read := _control_in_text(tokenizer.backend_tokenizer):
            raise ModelUnsupported(
                name, f"its tokenizer reads {', '.join(read[:3])} in a text as control tokens; choose another model"
            )
    return tokenizer


def control_tokens(backend: Any) -> dict[str, int]:  # noqa: ANN401 - as above
    """The added tokens of a tokenizer that are signs between program and model, with their ids.

    Added are words, too, and runs of blanks, which a model has learned to read as one token: these are text.
    """
    added = backend.get_added_tokens_decoder()
    return {token.content: number for number, token in added.items() if token.special or _is_markup(token.content)}


def _is_markup(content: str) -> bool:
    """Whether an added token looks like ``<tool_call>`` or ``[INST]``: not all families mark these as special."""
    return len(content) > 2 and not content[0].isalnum() and not content[-1].isalnum() and bool(_WORD.search(content))


def _read_as_text(tokenizer: Any) -> None:  # noqa: ANN401 - as above
    """Have the tokenizer read control tokens as the characters that they are written with."""
    backend = tokenizer.backend_tokenizer
    # Those that are kept in a file would cut a text in silence.
    backend.no_truncation()
    backend.no_padding()
    unmarked = [token for token in backend.get_added_tokens_decoder().values() if not token.special]
    backend.add_special_tokens(
        [AddedToken(one.content, special=True, normalized=False) for one in unmarked if _is_markup(one.content)]
    )
    # Both: any call of the wrapper sets the backend's to its own.
    tokenizer.split_special_tokens = True
    backend.encode_special_tokens = True
    if isinstance(backend.model, models.Unigram) and _control_in_text(backend):
        backend.model = _without_pieces(backend, set(control_tokens(backend)))


def _control_in_text(backend: Any) -> list[str]:  # noqa: ANN401 - as above
    """The control tokens that are still read out of a text. What stands for unknown characters is none of them."""
    control = control_tokens(backend)
    unknown = set(backend.encode(_UNKNOWN, add_special_tokens=False).ids)
    texts = [text for content in control for text in (content, f"a{content}b", f"a {content} b")]
    read = iter(backend.encode_batch(texts, add_special_tokens=False))
    found = {content: {*next(read).ids, *next(read).ids, *next(read).ids} for content in control}
    return [content for content, ids in found.items() if control[content] in ids - unknown]


def _without_pieces(backend: Any, contents: Set[str]) -> Any:  # noqa: ANN401 - as above
    """The same Unigram model with these pieces out of reach of any text, and every id as it was."""
    model = json.loads(backend.to_str())["model"]
    pieces = [(f"{_UNREACHED}{piece}" if piece in contents else piece, score) for piece, score in model["vocab"]]
    return models.Unigram(pieces, unk_id=model["unk_id"], byte_fallback=model["byte_fallback"])
