"""Named arrays of numbers kept on disk by key, a file each, which is written beside its place and moved there whole."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ArrayCache:
    """Named arrays by key in one folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, key: str) -> dict[str, NDArray[Any]] | None:
        """The arrays, or None if there is no whole file of them."""
        try:
            # Opened here, because numpy leaves a broken file open.
            with (self.folder / f"{key}.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def store(self, key: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep the arrays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            Path(scratch).replace(self.folder / f"{key}.npz")
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise


def digest(value: object) -> str:
    """A name for a value of JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
