"""What is said of a model that cannot be loaded, and of one whose files are not the whole of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gasp_core.errors import GaspError, ModelError, ModelNotFound, ModelUnsupported
from gasp_core.weights import BrokenFile, read_json, require_content, stored_tensors, weight_files

CAUSAL = "a causal language model"

AGAIN = "take the whole model again"

# Parts of a checkpoint that reading a text has no use for: other senses, and heads that guess several tokens ahead.
_OTHER_PARTS = re.compile(r"(^|\.)(vision|visual|audio|speech|image|video|multi_modal|mm_|mtp)")

_LISTED = 3
_REASON_CHARS = 200


@contextmanager
def named_faults(name: str, kind: str = CAUSAL) -> Iterator[None]:
    """Turn whatever transformers, tokenizers and torch raise meanwhile into what is wrong with the model of that name.

    Raises ModelNotFound or ModelUnsupported. Checkpoints are other people's: no list of errors is ever complete.
    """
    try:
        yield
    except GaspError:
        raise
    except Exception as error:
        raise load_error(name, error, kind) from error


def load_error(name: str, error: Exception, kind: str = CAUSAL) -> ModelError:
    """What to raise for an error of transformers: what is wrong with the model of that name, and what to do."""
    folder = Path(name)
    if folder.is_dir():
        return _folder_error(folder, error, kind)
    if isinstance(error, OSError):
        reason = "no such folder, and no such model in the local cache or the hub (or it has no safetensors weights)"
        return ModelNotFound(name, f"{reason}: {_said(error)}")
    return _unsupported(name, error, kind, {})


def _folder_error(folder: Path, error: Exception, kind: str) -> ModelError:
    """The files are looked at only now: a folder that loads may hold what it likes beside the model."""
    name = str(folder)
    if not (folder / "config.json").is_file():
        return ModelNotFound(name, "the folder holds no config.json; give the folder that holds the model's files")
    try:
        config = read_json(folder / "config.json")
        files = weight_files(folder)
        if not files:
            return ModelUnsupported(name, "the folder holds no .safetensors weights; no other format is loaded")
        if lacking := [path.name for path in files if not path.is_file()]:
            return ModelUnsupported(name, f"the folder lacks {_some(lacking)}; {AGAIN}")
        for path in files:
            stored_tensors(path)
        for path in folder.glob("*token*"):
            require_content(path)
        if (folder / "tokenizer.json").is_file():
            read_json(folder / "tokenizer.json")
    except (BrokenFile, OSError, KeyError, TypeError, AttributeError) as fault:
        return ModelUnsupported(name, f"{fault}; {AGAIN}")
    return _unsupported(name, error, kind, config)


def _unsupported(name: str, error: Exception, kind: str, config: Mapping[str, Any]) -> ModelError:
    said = _said(error)
    reason = f"cannot be loaded as {kind} ({type(error).__name__}{': ' if said else ''}{said})"
    if quantized := config.get("quantization_config"):
        way = quantized.get("quant_method", "some way") if isinstance(quantized, dict) else "some way"
        return ModelUnsupported(name, f"its weights are quantized by {way}; choose those that are not; {reason}")
    if isinstance(error, ImportError):
        return ModelUnsupported(name, f"it needs a Python package that is not installed; {reason}")
    if isinstance(error, MemoryError) or "out of memory" in said:
        return ModelUnsupported(name, f"it is larger than the device's memory; {reason}")
    return ModelUnsupported(name, f"{reason}; {AGAIN}, choose another, or update transformers and tokenizers")


def _said(error: Exception) -> str:
    """What an error says, in one line of no great length."""
    return " ".join(str(error).split())[:_REASON_CHARS]


def require_whole(name: str, told: Mapping[str, Collection[Any]], kind: str = CAUSAL) -> None:
    """Raise ModelUnsupported unless each weight of the model came from its files.

    ``told`` is transformers' ``loading_info``: it fills what is missing, or has another shape, with random numbers.
    """
    if wrong := sorted(key for key, *_ in told["mismatched_keys"]):
        raise ModelUnsupported(name, f"weights have other shapes than its config.json says: {_some(wrong)}; {AGAIN}")
    if missing := sorted(told["missing_keys"]):
        beside = sorted(told["unexpected_keys"])
        instead = f", and its files hold {_some(beside)} instead" if beside else ""
        raise ModelUnsupported(
            name, f"it lacks weights of {kind}: {_some(missing)}{instead}; {AGAIN}, or one that was trained as such"
        )


def require_nothing_beside(name: str, told: Mapping[str, Collection[Any]]) -> None:
    """Raise ModelUnsupported if its files hold weights that have no place in it: they are then of another model.

    Such as the head of a reward model, layers beyond those that config.json counts, or an adapter that was not merged.
    """
    if beside := sorted(key for key in told["unexpected_keys"] if not _OTHER_PARTS.search(key)):
        raise ModelUnsupported(
            name,
            f"its files hold weights that {CAUSAL} with its config.json has no place for: {_some(beside)}; choose a"
            " model that was trained as such",
        )


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_LISTED]
    return ", ".join(shown) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
