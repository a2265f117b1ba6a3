"""A release and the one before it on one database: nothing stops, nothing is lost, doubled or refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from migrations.revisions import head_revision
from tests.bars import bar
from tests.brokers import Broker
from tests.previous_release import previous_worker, run_previous, unpack_previous_release
from tests.waiting import wait_until
from tests.workers import Deployment

PARTITIONS = 4
PORTION = bar(40, 20)
# A process of the release before imports torch anew, on a machine that may have much else to do.
START_DEADLINE_S = 240.0
OLD_ROLES = "consume,attribute,jobs"
# What two releases cannot be the reason of: a server that answers late on a busy machine.
HARMLESS = {"transient_fault", "job_postponed"}
# Nor is this one: a member that joins may come between a worker and the offsets that it keeps in Kafka for other tools.
COMMIT_MET_REBALANCE = ("kafka_commit_failed", "RebalanceInProgressError")

Deploy = Callable[..., Deployment]


def owned(deployment: Deployment, pid: int) -> int:
    """How many partitions this process has claimed."""
    owners = deployment.rows("SELECT owner FROM partition_offsets")
    return len([row for row in owners if f"-{pid}-" in row["owner"]])


def events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines() if line.startswith("{")]


def settled_by(log: Path) -> int:
    """How many messages the worker of this log gave their outcome."""
    found = [event for event in events(log) if event["event"] == "settled"]
    return sum(int(count) for event in found for key, count in event.items() if ":" in key)


def troubles(logs: Sequence[Path]) -> set[str]:
    """The events at level warning or above, but for commits that met a rebalance."""
    found = [event for log in logs for event in events(log) if event["level"] not in {"debug", "info"}]
    return {one["event"] for one in found if (one["event"], one.get("error")) != COMMIT_MET_REBALANCE}


def wait_shared(deployment: Deployment, *processes: int) -> None:
    """Until each of two processes has half of the partitions."""
    half = PARTITIONS // 2
    wait_until(
        lambda: [owned(deployment, pid) for pid in processes] == [half, half],
        what="half of the partitions each",
        deadline_s=START_DEADLINE_S,
    )


def check_books(deployment: Deployment, messages: int) -> None:
    """Each message has one outcome and one row of each kind; each release has one scorer and its threshold."""
    assert deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1") == [
        {"outcome": "scored", "n": messages}
    ]
    assert deployment.count("interactions") == deployment.count("verdicts") == messages
    assert deployment.rows("SELECT count(DISTINCT interaction_id) AS n FROM interactions") == [{"n": messages}]
    # This release scores otherwise than the one before, so it has an identity of its own.
    assert deployment.count("scorers") == deployment.count("thresholds") == 2
    assert sum(row["next_offset"] for row in deployment.rows("SELECT next_offset FROM partition_offsets")) == messages


@pytest.mark.kafka
@pytest.mark.timeout(1200)
def test_the_release_before_works_beside_this_one_on_the_schema_of_this_one(
    apache: Broker, deploy: Deploy, empty_database_url: str, tmp_path: Path
) -> None:
    release = unpack_previous_release(tmp_path / "previous")
    deployment = deploy(apache, partitions=PARTITIONS, database_url=empty_database_url)
    environment = deployment.environment()
    logs = [tmp_path / f"previous-{number}.log" for number in range(2)]
    run_previous(release, tmp_path / "previous-migrate.log", environment, "migrate")

    with ExitStack() as first:
        old = first.enter_context(previous_worker(release, logs[0], environment, "run", "--roles", OLD_ROLES))
        deployment.send(0, PORTION)
        wait_until(
            lambda: deployment.count("ledger") >= PORTION // 2,
            what="the release before to work",
            deadline_s=START_DEADLINE_S,
        )
        assert deployment.run("migrate").returncode == 0
        assert deployment.rows("SELECT max(revision) AS r FROM schema_revisions") == [{"r": head_revision()}]
        deployment.send(PORTION, PORTION)
        with deployment.worker() as new:
            wait_shared(deployment, old, new.process.pid)
            deployment.send(2 * PORTION, PORTION)
            wait_until(lambda: deployment.count("ledger") >= 3 * PORTION, what="both to work")
            first.close()
            # One of the release before that restarts on the new schema.
            with previous_worker(release, logs[1], environment, "run", "--roles", OLD_ROLES) as again:
                wait_shared(deployment, again, new.process.pid)
                deployment.send(3 * PORTION, PORTION)
                wait_until(lambda: deployment.count("ledger") >= 4 * PORTION, what="both to work again")
                # Nobody else has the scorer of the release before.
                wait_until(lambda: deployment.open_jobs() == 0, what="its attribution jobs to be done")
            deployment.send(4 * PORTION, PORTION)
            deployment.wait_settled(5 * PORTION)
            assert new.end(signal.SIGTERM) == 0

    check_books(deployment, 5 * PORTION)
    settled = [settled_by(log) for log in (*logs, new.log)]
    assert min(settled) > 0
    assert sum(settled) == 5 * PORTION
    assert troubles([*logs, new.log]) <= HARMLESS
