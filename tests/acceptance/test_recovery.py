"""Workers that die, stop and take over: nothing is lost and nothing is doubled."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.alike import assert_alike
from tests.brokers import Broker
from tests.exchanges import write_exchanges
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.embedded.databases import create_database, drop_database

BAD_LINES = (
    "not json",
    '{"question": "no answer"}',
    "[1, 2]",
    '{"question": "q", "passages": [], "answer": "Yes it is."}',
)

Deploy = Callable[..., Deployment]


def test_a_worker_killed_in_mid_run_leaves_the_tables_of_an_undisturbed_run(
    broker: Broker, deploy: Deploy, postgres_server: str, template_database: str, tmp_path: Path
) -> None:
    file = write_exchanges(tmp_path / "in.jsonl", 40, *BAD_LINES)
    messages = 40 + len(BAD_LINES)

    undisturbed = deploy(broker, partitions=2)
    undisturbed.replay(file)
    with undisturbed.worker():
        undisturbed.wait_settled(messages)

    other = create_database(postgres_server, f"killed_{broker.name}", template=template_database)
    killed = deploy(broker, partitions=2, database_url=other)
    killed.replay(file)
    with killed.worker() as worker:
        wait_until(lambda: killed.count("ledger") >= messages // 3, what="a third of the ledger")
        assert worker.end(signal.SIGKILL) == -signal.SIGKILL
    assert killed.count("ledger") < messages
    with killed.worker():
        killed.wait_settled(messages)

    assert_alike(killed.picture(), undisturbed.picture(), tolerance=1e-4)
    assert killed.count("ledger") == messages
    drop_database(postgres_server, f"killed_{broker.name}")


@pytest.mark.kafka
def test_of_two_workers_on_four_partitions_one_stopped_hard_is_replaced_by_the_other(
    apache: Broker, deploy: Deploy, tmp_path: Path
) -> None:
    deployment = deploy(apache, partitions=4)
    first, second = (write_exchanges(tmp_path / f"{part}.jsonl", 60) for part in (1, 2))
    with deployment.worker() as stays, deployment.worker() as dies:
        wait_until(lambda: stays.events("rebalanced") and dies.events("rebalanced"), what="both to join")
        deployment.replay(first)
        wait_until(lambda: dies.events("settled") and stays.events("settled"), what="both to work")
        dies.end(signal.SIGKILL)
        text = second.read_text(encoding="utf-8").replace("museum-", "gallery-")
        second.write_text(text, encoding="utf-8")
        deployment.replay(second)
        deployment.wait_settled(120)
        assert stays.end(signal.SIGTERM) == 0
    assert deployment.count("ledger") == 120
    assert deployment.count("interactions") == 120
    assert deployment.rows("SELECT outcome, count(*) AS n FROM ledger GROUP BY 1") == [{"outcome": "scored", "n": 120}]
    assert sum(row["next_offset"] for row in deployment.rows("SELECT next_offset FROM partition_offsets")) == 120


def test_a_worker_told_to_stop_finishes_its_batch_leaves_the_group_and_exits_cleanly(
    tansu: Broker, deploy: Deploy, tmp_path: Path
) -> None:
    deployment = deploy(tansu, partitions=2)
    file = write_exchanges(tmp_path / "in.jsonl", 60)
    deployment.replay(file)
    with deployment.worker() as worker:
        wait_until(lambda: deployment.count("ledger") >= 8, what="8 ledger rows")
        assert worker.end(signal.SIGTERM) == 0
        assert worker.events("stopped") == 1
    stopped_at = deployment.count("ledger")
    # What is booked is booked in whole batches, and the positions say the same as the ledger.
    offsets = deployment.rows("SELECT sum(next_offset)::int AS n FROM partition_offsets")[0]["n"]
    assert offsets == stopped_at
    with deployment.worker():
        deployment.wait_settled(60)
    assert deployment.count("ledger") == 60


def test_replaying_a_file_again_changes_nothing_but_the_ledger(tansu: Broker, deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy(tansu)
    file = write_exchanges(tmp_path / "in.jsonl", 10)
    with deployment.worker():
        deployment.replay(file)
        deployment.wait_settled(10)
        before = deployment.picture()
        deployment.replay(file)
        deployment.wait_settled(20)
    after = deployment.picture()
    assert {name: rows for name, rows in after.items() if name not in {"ledger", "offsets"}} == {
        name: rows for name, rows in before.items() if name not in {"ledger", "offsets"}
    }
    assert {(row["outcome"], row["reason"]) for row in after["ledger"][10:]} == {("skipped", "duplicate")}
