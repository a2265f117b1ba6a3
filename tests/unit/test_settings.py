"""Settings: read once, checked, and named when they are wrong."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from worker.errors import SettingsError
from worker.settings.settings import read_database_settings, read_settings

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


TOPICS = ("GASP_TOPIC", "GASP_DEAD_LETTER_TOPIC", "GASP_REVIEW_TASKS_TOPIC", "GASP_REVIEW_LABELS_TOPIC")


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(TOPICS, 2)))
def test_no_topic_is_for_two_things(environment: pytest.MonkeyPatch, first: str, second: str) -> None:
    environment.setenv(first, "events")
    environment.setenv(second, "events")
    with pytest.raises(SettingsError, match=f"^{second}: it names the same topic as {first}; "):
        read_settings()


def test_a_topic_may_not_be_the_default_of_another(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GASP_TOPIC", "gasp.dead-letters.v1")
    with pytest.raises(SettingsError, match=r"^GASP_DEAD_LETTER_TOPIC: it names the same topic as GASP_TOPIC; "):
        read_settings()


def test_topics_that_are_off_are_not_the_same_topic(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GASP_REVIEW_TASKS_TOPIC", "")
    environment.setenv("GASP_REVIEW_LABELS_TOPIC", "")
    assert read_settings().review_channels == ()


def test_what_looks_into_the_database_alone_needs_no_broker(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("GASP_KAFKA_BOOTSTRAP_SERVERS")
    assert read_database_settings().database == "postgresql+psycopg://auditor:s3cret@db/gasp"
    environment.delenv("GASP_DATABASE_URL")
    with pytest.raises(SettingsError, match=r"^GASP_DATABASE_URL: Field required$"):
        read_database_settings()


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder as Kubernetes mounts it: the names lead to a hidden folder beside them."""
    hidden = tmp_path / "..data"
    hidden.mkdir()
    for name, value in GOOD.items():
        monkeypatch.delenv(name, raising=False)
        (hidden / name.lower()).write_text(f"{value}\n")
        (tmp_path / name.lower()).symlink_to(Path("..data") / name.lower())
    monkeypatch.setenv("GASP_SECRETS_DIR", str(tmp_path))
    return tmp_path


def test_settings_may_stand_in_files(secrets: Path) -> None:
    settings = read_settings()
    assert settings.database == "postgresql+psycopg://auditor:s3cret@db/gasp"
    assert settings.kafka_bootstrap_servers == "broker:9092"
    assert settings.secrets_dir == secrets
    assert "s3cret" not in repr(settings)


@pytest.mark.usefixtures("secrets")
def test_the_environment_wins_over_a_file(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "other:9092")
    assert read_settings().kafka_bootstrap_servers == "other:9092"


@pytest.mark.parametrize("content", [b"mysql://auditor:s3cret@db/gasp", b"s3cret\xff"])
def test_a_wrong_value_in_a_file_is_named_without_it(secrets: Path, content: bytes) -> None:
    (secrets / "..data" / "gasp_database_url").write_bytes(content)
    with pytest.raises(SettingsError, match=r"^GASP_(DATABASE_URL|SECRETS_DIR): ") as caught:
        read_settings()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_folder_of_secrets_that_is_none_is_refused(
    environment: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").touch()
    environment.setenv("GASP_SECRETS_DIR", str(tmp_path / name))
    with pytest.raises(SettingsError, match=r"^GASP_SECRETS_DIR: there is no such folder$"):
        read_settings()


WEBHOOK = {"review_webhook_url": "https://reviews.example/tasks", "review_webhook_secret": "sixteen or more characters"}


@pytest.mark.usefixtures("environment")
def test_review_tasks_are_told_on_the_topic_and_on_a_webhook_if_one_is_set() -> None:
    assert read_settings().review_channels == ("kafka",)
    assert read_settings(**WEBHOOK).review_channels == ("kafka", "webhook")
    assert read_settings(review_tasks_topic="").review_channels == ()


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]"])
def test_a_webhook_on_this_machine_needs_no_encryption(host: str) -> None:
    settings = read_settings(**WEBHOOK | {"review_webhook_url": f"http://{host}/tasks"})
    assert settings.review_channels == ("kafka", "webhook")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "url",
    [
        "http://reviews.example/t0ken",
        "http://localhost.reviews.example/t0ken",
        "http://localhost@reviews.example/t0ken",
        "ftp://localhost/t0ken",
        "https:///t0ken",
        "t0ken",
    ],
)
def test_a_webhook_that_others_could_read_is_refused_without_its_address(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^GASP_REVIEW_WEBHOOK_URL: .*https://") as caught:
        read_settings(**WEBHOOK | {"review_webhook_url": url})
    assert "t0ken" not in str(caught.value)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("secret", [None, "", "short"])
def test_a_webhook_needs_a_secret_that_cannot_be_guessed(secret: str | None) -> None:
    with pytest.raises(SettingsError, match=r"^GASP_REVIEW_WEBHOOK_SECRET: "):
        read_settings(**WEBHOOK | {"review_webhook_secret": secret})


@pytest.mark.usefixtures("environment")
def test_address_and_secret_of_the_webhook_are_never_shown() -> None:
    shown = repr(read_settings(**WEBHOOK))
    assert "reviews.example" not in shown
    assert "sixteen" not in shown


def test_several_topics_are_named_with_commas(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GASP_TOPIC", " traces , rows")
    settings = read_settings()
    assert (settings.topics, settings.first_topic) == (("traces", "rows"), "traces")


@pytest.mark.parametrize("topic", ["", "a,", "a,b,a", "a,gasp.dead-letters.v1"])
def test_a_topic_is_named_once_and_for_one_thing(environment: pytest.MonkeyPatch, topic: str) -> None:
    environment.setenv("GASP_TOPIC", topic)
    with pytest.raises(SettingsError, match=r"GASP_(DEAD_LETTER_)?TOPIC"):
        read_settings()


def test_a_format_is_set_for_all_topics_or_for_some(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GASP_TOPIC", "spans,rows,else")
    environment.setenv("GASP_FORMAT", "native, spans = otlp,rows=flat")
    settings = read_settings()
    assert [settings.format_of(topic) for topic in ("spans", "rows", "else", None)] == [
        "otlp",
        "flat",
        "native",
        "native",
    ]
    environment.delenv("GASP_FORMAT")
    assert read_settings().format_of("spans") == "auto"


@pytest.mark.parametrize("value", ["nonsense", "spans=nonsense", "another=otlp", "spans="])
def test_a_format_that_is_none_or_of_no_topic_is_refused(environment: pytest.MonkeyPatch, value: str) -> None:
    environment.setenv("GASP_TOPIC", "spans")
    environment.setenv("GASP_FORMAT", value)
    with pytest.raises(SettingsError, match="GASP_FORMAT"):
        read_settings()
