"""Settings: read once, checked, and named when they are wrong."""

from __future__ import annotations

import pytest

from worker.errors import SettingsError
from worker.settings import read_settings

GOOD = {"GASP_DATABASE_URL": "postgresql://auditor:s3cret@db/gasp", "GASP_KAFKA_BOOTSTRAP_SERVERS": "broker:9092"}


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.mark.usefixtures("environment")
def test_the_least_that_is_needed_is_a_database_and_a_broker() -> None:
    settings = read_settings()
    assert settings.database_url.get_secret_value() == "postgresql+psycopg://auditor:s3cret@db/gasp"
    assert settings.topic == "gasp.interactions.v1"


@pytest.mark.usefixtures("environment")
def test_a_password_is_never_shown() -> None:
    assert "s3cret" not in repr(read_settings())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GASP_DATABASE_URL", "mysql://auditor:s3cret@db/gasp"),
        ("GASP_BATCH_MESSAGES", "0"),
        ("GASP_ATTRIBUTION_SHARE", "1"),
        ("GASP_MAX_CONTEXT_TOKENS", "many"),
        ("GASP_LOG_LEVEL", "loud"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named_without_its_value(
    environment: pytest.MonkeyPatch, name: str, value: str
) -> None:
    environment.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name}: ") as caught:
        read_settings()
    assert "s3cret" not in str(caught.value)


def test_missing_settings_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in GOOD:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == list(GOOD)
