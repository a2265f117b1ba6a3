"""Models that the unit tests share; saved once a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gasp_core.model import LanguageModel, load_model
from tests.models import save_model


@pytest.fixture(scope="session")
def tiny_model_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LanguageModel]:
    """A tiny model of a family, by name."""

    @cache
    def load(family: str) -> LanguageModel:
        return load_model(str(save_model(tmp_path_factory.mktemp("models") / f"tiny-{family}", family)), device="cpu")

    return load


@pytest.fixture(scope="session")
def tiny_model(tiny_model_of: Callable[[str], LanguageModel]) -> LanguageModel:
    """A tiny Llama."""
    return tiny_model_of("llama")


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Path:
    """A folder with a tiny Llama that a test may spoil."""
    return save_model(tmp_path / "tiny")
