"""What the server of ``tests.forked`` has imported, so that no worker process imports it anew."""

from __future__ import annotations

import gc

gc.disable()  # for the time of the imports: what they make is no garbage

import worker.service  # noqa: E402, F401 - imported for the children
from worker.cli import main  # noqa: E402, F401 - as above

gc.freeze()
gc.enable()
