"""What reviewers of an app are to go by beside what the labels mean: a folder with a text for each app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from worker.errors import SettingsError

MAX_BYTES = 64 * 1024
_EVERY_OTHER = "default"


@dataclass(frozen=True, slots=True)
class Guidelines:
    """The texts by app."""

    by_app: Mapping[str, str]

    def of(self, app: str) -> str:
        """That of the app, or that of every other one; empty if there is none."""
        return self.by_app.get(app, self.by_app.get(_EVERY_OTHER, ""))


def read_guidelines(folder: Path | None) -> Guidelines:
    """Read ``<app>.txt`` of a folder, the app's name percent-encoded. Raises SettingsError for what cannot be shown."""
    if folder is None:
        return Guidelines({})
    try:
        files = {unquote(path.stem): path for path in folder.iterdir() if path.suffix == ".txt"}
        if any(path.stat().st_size > MAX_BYTES for path in files.values()):
            raise SettingsError(f"GASP_REVIEW_PAGE_GUIDELINES: a text has more than {MAX_BYTES // 1024} KiB")
        return Guidelines({app: path.read_text("utf-8").strip() for app, path in files.items()})
    except (OSError, UnicodeError):
        raise SettingsError("GASP_REVIEW_PAGE_GUIDELINES: it is no folder of texts that can be read") from None
