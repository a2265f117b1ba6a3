"""What the worker says of a model that it cannot load, or cannot judge by; a stop while a new one reads."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from gasp_core.detectors.fused import FUSED_FREE
from gasp_core.model import LanguageModel
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from worker.errors import SettingsError, Stopped
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.service import load_scorer, standardised_for, tracked
from worker.settings.settings import read_settings


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, r"config\.json.*GASP_MODEL"),
        ({"device": "gpu"}, "gpu.*GASP_DEVICE"),
        ({"dtype": "int8"}, "int8.*GASP_DTYPE"),
    ],
)
def test_a_model_that_cannot_be_loaded_names_the_setting_to_look_at(
    tmp_path: Path, settings: dict[str, object], named: str
) -> None:
    places = {"database_url": "postgresql://host/database", "kafka_bootstrap_servers": "host:1"}
    with pytest.raises(SettingsError, match=named):
        load_scorer(read_settings(**places, model=str(tmp_path), **settings))


def test_a_model_that_reads_too_little_to_be_standardised_names_the_setting(
    tiny_model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path))
    narrow = GroundingScorer(tiny_model, limits=Limits(max_answer_tokens=4))
    with pytest.raises(SettingsError, match=r"^GASP_DETECTOR: .* of the reference set"):
        standardised_for(narrow, FUSED_FREE)


def test_a_stop_does_not_wait_for_the_reference_set(
    tiny_model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path))
    stop = Stop()
    start = RetryPolicy(stop, Telemetry(), part="start", within_s=60.0)
    stop.set()
    with pytest.raises(Stopped):
        standardised_for(GroundingScorer(tiny_model), FUSED_FREE, partial(tracked, start, stop))
    assert not (tmp_path / "figures").exists()
