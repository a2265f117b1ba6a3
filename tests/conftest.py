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
    """No model is looked for on the hub, which would be asked again and again for half a minute."""
    os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(autouse=True)
def fresh_logs() -> Iterator[None]:
    """No test logs into the stream of one before it, which is closed by then."""
    yield
    structlog.reset_defaults()
