"""What the commands need that look only into the database: the database as it was migrated, and no broker."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.integration.store_examples import TOPIC, advance, prepared, scored
from worker.cli import app as gasp_worker
from worker.errors import WorkerError
from worker.store.store import Store

Command = Callable[..., Result]

COMMANDS = (
    "thresholds list",
    "thresholds history",
    "thresholds preview --flag-below 0.5",
    "labels agreement",
    "labels import LABELS",
    "retention",
    "retention run --dry-run",
    "retention set 30 --app shop",
    "review policy",
    "review policy --app shop --reviewers 2",
    "review export NEW.csv --format csv",
    "report --app shop --since 30d --html NEW.html",
    "recalibrate",
    "rescore --scorer 1 --since 2026-01-01 --dry-run",
    "rejudge --app shop --since 2026-01-01",
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command with no more set than the database."""
    for name in [name for name in os.environ if name.startswith("GASP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("worker.runtime.logs.configure_logs", lambda _: None)
    (tmp_path / "labels.csv").write_text("task_id,sentence_index,label,reviewer\n", encoding="utf-8")
    paths = {"LABELS": "labels.csv", "NEW.csv": "new.csv", "NEW.html": "new.html"}

    def run(line: str, url: str) -> Result:
        monkeypatch.setenv("GASP_DATABASE_URL", url)
        words = [str(tmp_path / paths[word]) if word in paths else word for word in line.split()]
        return CliRunner().invoke(gasp_worker, words)

    return run


@pytest.mark.parametrize("line", [*COMMANDS, "migrate"])
def test_a_command_on_the_database_asks_for_no_broker(
    command: Command, store: Store, database_url: str, line: str
) -> None:
    _one_answer(store)
    done = command(line, database_url)
    assert done.exit_code == 0, (done.output, done.exception)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_says_what_to_do_with_a_database_that_was_never_migrated(
    command: Command, empty_database_url: str, line: str
) -> None:
    done = command(line, empty_database_url)
    assert isinstance(done.exception, WorkerError)
    assert "run gasp-worker migrate" in str(done.exception)


@pytest.mark.usefixtures("impatient")
def test_the_status_without_a_broker_is_what_the_database_knows(
    command: Command, store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _one_answer(store)
    known = [(one.topic, one.partition, one.next_offset, one.end_offset, one.lag) for one in store.offsets.statuses()]
    monkeypatch.setenv("GASP_TOPIC", TOPIC)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "no-such-host.invalid:9092")
    told = command("status --json", database_url)
    assert told.exit_code == 0, (told.output, told.exception)
    status = json.loads(told.stdout)
    assert status["outcomes"] == {"scored": 1}
    assert status["lag"] is None
    assert "no address is known of the host no-such-host.invalid" in status["broker_problem"]
    assert [tuple(one.values()) for one in status["partitions"]] == known
    page = command("status", database_url).stdout.splitlines()
    assert page[0].startswith(f"{TOPIC}: how many messages wait is not known now: ")


def _one_answer(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.05, 0.9], threshold)], [advance(0, 1)])
