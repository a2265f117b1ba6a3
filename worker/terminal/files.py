"""Files that are named on the command line."""

from __future__ import annotations

from pathlib import Path

from worker.errors import InputFileError


def require_file(path: Path) -> None:
    """Raise InputFileError unless there is such a file: better said before anything is imported or opened."""
    if not path.is_file():
        raise InputFileError(f"{path}: no such file")


def require_folder_of(path: Path) -> None:
    """Raise InputFileError unless the folder that ``path`` is to be written into exists."""
    if not path.parent.is_dir():
        raise InputFileError(f"{path.parent}: no such folder")
