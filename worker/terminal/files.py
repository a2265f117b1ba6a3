"""Files that are named on the command line."""

from __future__ import annotations

from pathlib import Path

from worker.errors import InputFileError

# What a file of messages may be, for the help.
MESSAGES = "Lines of JSON, rows of Parquet, one message of any format, or a folder of message-1.bin …; also gzipped."


def require_file(path: Path) -> None:
    """Raise InputFileError unless there is such a file: better said before anything is imported or opened."""
    try:
        path.open("rb").close()
    except IsADirectoryError:
        raise InputFileError(f"{path}: is a folder; a file is wanted") from None
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file") from None
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from None


def require_input(path: Path) -> None:
    """Raise InputFileError unless there is such a file, or a folder of messages."""
    if not path.is_dir():
        require_file(path)
    elif next(path.glob("message-*.bin"), None) is None:
        raise InputFileError(f"{path}: is a folder without message-1.bin; a file is wanted, or a folder of messages")


def require_folder_of(path: Path) -> None:
    """Raise InputFileError unless a file ``path`` could be written: its folder exists, and it is no folder itself."""
    if path.is_dir():
        raise InputFileError(f"{path}: is a folder; a file is wanted")
    if not path.parent.is_dir():
        raise InputFileError(f"{path.parent}: no such folder")
