"""What is wrong with the set-up: one line for each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from gasp_core.errors import GaspError
from schemas.encodings.schema import KeyKind, SchemaKey
from worker.broker.admin import BrokerAdmin
from worker.broker.errors import BrokerError
from worker.errors import WorkerError
from worker.schema_registry.schemas import opened_schemas
from worker.service import load_scorer, standardised_for
from worker.settings.detectors import choose_detector
from worker.settings.security import kafka_security, security_warning
from worker.settings.settings import Settings, read_settings
from worker.store.errors import StoreError
from worker.store.schema import require_usable_schema
from worker.store.store import open_store
from worker.terminal.progress import waiting


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One part of the set-up; ``problem`` is None if it is in order, else what to do."""

    part: str
    problem: str | None
    fact: str = ""


def check_setup(overrides: dict[str, object]) -> Iterator[CheckResult]:
    """Look at settings, broker, database and model, in this order. Without settings there is nothing more to see."""
    try:
        settings = read_settings(**overrides)
    except WorkerError as error:
        for line in str(error).splitlines():
            yield CheckResult("settings", line)
        return
    yield CheckResult("settings", None, f"topic {settings.topic.replace(',', ', ')}, group {settings.consumer_group}")
    yield _find("broker", "asking the broker", lambda: _broker(settings))
    if settings.schema_registry_url is not None or settings.message_schema_file is not None:
        yield _find("schemas", "asking the schema registry", lambda: _schemas(settings))
    yield _find("database", "asking the database", lambda: _database(settings))
    yield _find("model", "loading the model and trying it, which takes a minute or more", lambda: _model(settings))


def _find(part: str, doing: str, look: Callable[[], str]) -> CheckResult:
    try:
        with waiting(doing):
            return CheckResult(part, None, look())
    except (BrokerError, GaspError, StoreError, WorkerError) as error:
        return CheckResult(part, " ".join(str(error).split()))


def _model(settings: Settings) -> str:
    scorer = load_scorer(settings)
    newest = _newest_method(settings, scorer.identity.model)
    chosen = choose_detector(settings.detector, scorer.identity, newest, settings.detector_file)
    detector = standardised_for(scorer, chosen)
    return detector.judging(scorer.reading(detector.taps()).identity).label


def _newest_method(settings: Settings, model: str) -> str | None:
    """By what this model judged last, as far as the database can be asked; its own line says if it cannot."""
    with suppress(StoreError), open_store(settings.database, application_name="gasp-check") as store:
        return store.scorers.newest_method(model)
    return None


def _broker(settings: Settings) -> str:
    with BrokerAdmin(settings.kafka_bootstrap_servers, security=kafka_security(settings)) as admin:
        admin.ping()
        partitions = {topic: len(admin.topic_partitions(topic)) for topic in settings.topics}
        for topic in (settings.dead_letter_topic, settings.review_tasks_topic, settings.review_labels_topic):
            if topic:
                admin.topic_partitions(topic)
    warning = security_warning(settings)
    told = ", ".join(f"{topic} has {count} partitions" for topic, count in partitions.items())
    return told + (f"; note: {warning}" if warning else "")


def _schemas(settings: Settings) -> str:
    with opened_schemas(settings) as schemas:
        if schemas.source is None:
            return "the schema of messages can be used"
        # Whether it knows one by this id does not matter.
        schemas.source.look_up(SchemaKey(KeyKind.ID, "1"))
    return "the registry answers"


def _database(settings: Settings) -> str:
    with open_store(settings.database, application_name="gasp-check") as store:
        store.server.ping()
        require_usable_schema(store.server)
        return f"at revision {store.server.schema().revision}"
