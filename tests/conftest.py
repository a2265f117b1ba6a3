"""What every tier of tests has in common."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

# Examples run on shared machines, where a slow one says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


def pytest_configure() -> None:
    """Set what torch and transformers read when they are imported, here and in the processes that tests start."""
    # The hub would be asked again and again, for half a minute a model that is not there.
    os.environ["HF_HUB_OFFLINE"] = "1"
    # Tests run side by side, and the models are tiny: threads that wait for each other cost four times the CPU.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def fresh_logs() -> Iterator[None]:
    """No test logs into the stream of one before it, which is closed by then."""
    yield
    structlog.reset_defaults()
