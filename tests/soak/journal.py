"""The event log: one JSON object a line, of everything that is sent and done, without any text of a message."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path


class Journal:
    """Appends to a file. Any thread may write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._started_at = time.monotonic()

    def note(self, event: str, **facts: object) -> None:
        """Write one line, with the seconds since the start."""
        line = json.dumps({"at_s": round(time.monotonic() - self._started_at, 3), "event": event, **facts})
        with self._lock:
            self._file.write(line + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
