"""History under another scorer: what the command queues, and workers that work it off."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.exchanges import write_exchanges
from tests.integration.store_examples import OTHER_IDENTITY, advance, prepared, scored
from tests.models import save_model
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.store.leases import Backlog
from worker.store.store import Store

Deploy = Callable[..., Deployment]

LABEL = OTHER_IDENTITY.label
SINCE = "2025-11-30T09:00"


@pytest.fixture
def history(store: Store) -> int:
    """Five interactions of 2025-11-30 10:00 UTC that one scorer has judged; gives the id of another."""
    scorer_id, threshold = prepared(store)
    apps = ("shop", "shop", "shop", "bot", "bot")
    batch = [scored(n, f"id-{n}", [0.2], threshold, app=app) for n, app in enumerate(apps)]
    store.settlements.settle(scorer_id, batch, [advance(0, 5)])
    return prepared(store, OTHER_IDENTITY, partitions=0)[0]


def test_the_command_counts_queues_and_takes_back(tansu: Broker, deploy: Deploy, store: Store, history: int) -> None:
    run = deploy(tansu).run
    dry = run("rescore", "--scorer", LABEL, "--since", SINCE, "--dry-run")
    assert dry.stdout.splitlines() == [
        f"would queue 5 interactions for {LABEL}",
        "0 have its verdict already, 0 were queued before",
    ]
    assert store.rescore_jobs.backlog() == Backlog()
    first = run("rescore", "--scorer", str(history), "--since", SINCE, "--until", "2025-12-01", "--app", "bot")
    assert first.stdout.splitlines()[0] == f"queued 2 interactions for {LABEL}"
    second = run("rescore", "--scorer", LABEL, "--since", SINCE)
    assert second.stdout.splitlines() == [
        f"queued 3 interactions for {LABEL}",
        "0 have its verdict already, 2 were queued before",
    ]
    assert "re-scoring jobs" in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["rescoring"]["waiting"] == 5
    back = run("rescore", "--cancel", "--scorer", LABEL)
    assert back.stdout == f"took back 5 interactions that waited for {LABEL}\n"
    assert store.rescore_jobs.backlog() == Backlog()
    assert "re-scoring jobs" not in run("status").stdout


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scorer", "nobody", "--since", SINCE), "nobody is not a known scorer; these are:\n   1  tiny@"),
        (("--scorer", "1"), "say how far back to go"),
        (("--scorer", "1", "--since", "yesterday"), "ISO 8601"),
        (("--scorer", "1", "--since", SINCE, "--until", SINCE), "later than --since"),
        (("--scorer", "1", "--cancel", "--since", SINCE), "give --scorer alone"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tansu: Broker, deploy: Deploy, store: Store, arguments: tuple[str, ...], message: str
) -> None:
    done = deploy(tansu).run("rescore", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert store.rescore_jobs.backlog() == Backlog()


def test_a_second_model_judges_the_history_of_the_first_though_its_worker_is_killed(
    tansu: Broker, deploy: Deploy, tmp_path: Path
) -> None:
    answers = 40
    deployment = deploy(tansu)
    deployment.replay(write_exchanges(tmp_path / "in.jsonl", answers))
    with deployment.worker():
        deployment.wait_settled(answers)
    before = deployment.rows("SELECT * FROM verdicts ORDER BY id")

    deployment.model = save_model(tmp_path / "another")
    with deployment.worker("attribute") as dies:
        named = "SELECT id, label FROM scorers WHERE model = 'another'"
        wait_until(lambda: deployment.rows(named), what="the second scorer")
        (other,) = deployment.rows(named)
        queued = deployment.run("rescore", "--scorer", other["label"], "--since", "2000-01-01")
        assert f"queued {answers} interactions" in queued.stdout
        wait_until(lambda: deployment.count("rescore_jobs WHERE state = 'done'") > 0, what="a first batch")
        dies.end(signal.SIGKILL)
    with deployment.worker():
        done = f"rescore_jobs WHERE state = 'done' HAVING count(*) = {answers}"
        wait_until(lambda: deployment.rows(f"SELECT 1 FROM {done}"), what="every job")
        wait_until(lambda: deployment.open_jobs() == 0, what="attribution")

    verdicts = deployment.rows("SELECT * FROM verdicts ORDER BY id")
    assert verdicts[:answers] == before
    assert {row["scorer_id"] for row in verdicts[answers:]} == {other["id"]}
    assert sorted(row["interaction_pk"] for row in verdicts[answers:]) == sorted(
        row["interaction_pk"] for row in before
    )
    shown = {"scorer_id": other["id"], "n": answers}
    for view in ("v_interactions", "v_sentences"):
        seen = f"SELECT scorer_id, count(DISTINCT interaction_pk) AS n FROM {view} GROUP BY 1"
        assert deployment.rows(seen) == [shown]
    assert deployment.rows("SELECT count(*) AS n FROM v_interactions") == [{"n": answers}]
    assert deployment.rows("SELECT is_current, count(*) AS n FROM v_verdicts GROUP BY 1 ORDER BY 1") == [
        {"is_current": False, "n": answers},
        {"is_current": True, "n": answers},
    ]
