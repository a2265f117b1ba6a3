"""What the worker says of a model that it cannot load."""

from __future__ import annotations

from pathlib import Path

import pytest

from worker.errors import SettingsError
from worker.service import load_scorer
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
