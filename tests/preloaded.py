"""What the server of ``tests.forked`` has imported, so that no worker process imports it anew."""

from __future__ import annotations

import worker.service  # noqa: F401 - imported for the children
from worker.cli import main  # noqa: F401 - as above
