"""What every tier of tests has in common."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from tests.longest import LONGEST

# Examples run on shared machines, where a slow one says nothing.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")

ROOT = Path(__file__).parents[1]
ONEDNN_KERNELS = {"default": "SSE41", "avx2": "AVX2"}


def pytest_configure() -> None:
    """Set what torch and transformers read when they are imported, here and in the processes that tests start."""
    # The hub would be asked again and again, for half a minute a model that is not there.
    os.environ["HF_HUB_OFFLINE"] = "1"
    # Tests run side by side, and the models are tiny: threads that wait for each other cost four times the CPU.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # An older processor than this one, for torch's own kernels and for those of oneDNN, which it mixes otherwise.
    if kernels := ONEDNN_KERNELS.get(os.environ.get("ATEN_CPU_CAPABILITY", "")):
        os.environ.setdefault("ONEDNN_MAX_CPU_ISA", kernels)
    # What is imported stays: to look through it again and again for garbage takes a third of the time of importing.
    gc.disable()
    # At its end an interpreter takes everything down, and some libraries print what they find left.
    atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the others stay as they are, the slower folders before the quicker ones."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but not looked for in what was imported."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def fresh_logs() -> Iterator[None]:
    """No test logs into the stream of one before it, which is closed by then."""
    yield
    structlog.reset_defaults()
