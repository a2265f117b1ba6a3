"""The soak of `make soak` in two minutes, on Apache Kafka: most blows once, each exact point of a kill once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaCannotRun, fetch_jars
from tests.soak.chaos import MAX_NOTICE_S, MAX_TAKEOVER_S, MAX_TERM_EXIT_S
from tests.soak.checks import Findings, check_history, check_jobs, check_lag, check_ledger, check_tasks
from tests.soak.database import Step
from tests.soak.expectation import Expectation
from worker.rules.records import Record

# Seven kills: one at any moment, and one at each of the six exact points.
SHORT = (
    *("--messages", "800", "--backlog", "400", "--partitions", "6", "--workers", "2", "--seed", "1"),
    *("--kills", "7", "--terms", "2", "--stops", "1", "--broker-restarts", "1", "--database-restarts", "1"),
    # Each kill is waited out by the group.
    *("--session-timeout-s", "3"),
    # The long form alone has time for these.
    *("--growths", "1", "--freezes", "0", "--no-restore", "--no-pgbouncer"),
)


@pytest.mark.kafka
def test_nothing_is_lost_and_nothing_doubled_whatever_is_killed_stopped_or_restarted(tmp_path: Path) -> None:
    try:
        fetch_jars()
    except KafkaCannotRun as error:
        pytest.skip(f"Apache Kafka cannot run here: {error}")
    output = tmp_path / "soak.json"
    command = [sys.executable, "-m", "tests.soak", *SHORT, "--minutes", "4", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(output.read_text(encoding="utf-8"))
    assert figures["read"] >= 800
    assert figures["read"] == figures["stored"] + figures["skipped"] + figures["dead_lettered"]
    assert (figures["lost"], figures["duplicates"], figures["offset_regressions"]) == (0, 0, 0)
    assert len(figures["kills_by_point"]) == 7
    assert figures["fenced_writes"] >= figures["stops_fenced"] == figures["stops"] == 1
    assert figures["max_term_exit_s"] < MAX_TERM_EXIT_S
    assert figures["max_takeover_s"] < MAX_TAKEOVER_S
    assert figures["growths"] == 1
    assert figures["max_notice_s"] < MAX_NOTICE_S
    assert min(figures["transactions"], figures["aborted_transactions"], figures["aborted_records"]) > 0
    assert 0 < figures["job_runs_of_skewed"] < figures["job_runs"]


def step(from_offset: int, to_offset: int, *, owner: str = "one", generation: int = 1) -> Step:
    return Step(datetime.now(UTC), 0, owner, generation, 0, from_offset, to_offset)


GOOD = (step(0, 0), step(0, 4), step(4, 4, owner="two", generation=2), step(4, 9, owner="two", generation=2))


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        (GOOD, None),
        ((*GOOD, step(9, 4)), "steps back"),
        ((*GOOD[:2], step(5, 9)), "steps that do not begin"),
        ((*GOOD[:2], step(4, 9, owner="two")), "generations with two owners"),
        (GOOD[:2], "partitions that do not stand at their end"),
    ],
)
def test_the_checker_sees_what_is_wrong_with_a_history(steps: Sequence[Step], fault: str | None) -> None:
    findings = Findings()
    check_history(findings, steps, {0: 9})
    assert bool(findings.wrong) == (fault is not None)
    assert findings.regressions == (fault == "steps back")
    assert fault is None or findings.wrong[0].startswith(fault)


@pytest.mark.parametrize(
    ("booked", "lost", "doubled", "is_wrong"),
    [
        ([(0, 0, "scored"), (1, 0, "wrong_shape")], 0, 0, False),
        ([(0, 0, "scored")], 1, 0, True),
        ([(0, 0, "scored"), (1, 0, "wrong_shape"), (1, 1, "wrong_shape")], 0, 1, True),
        ([(0, 0, "scored"), (1, 0, "skipped:duplicate")], 0, 0, True),
        ([(0, 0, "scored"), (1, 0, "wrong_shape"), (2, 0, "scored")], 0, 0, True),
    ],
    ids=["as it should", "lost", "booked twice", "another outcome", "a row of no record"],
)
def test_the_checker_sees_what_is_wrong_with_the_ledger(
    booked: Sequence[tuple[int, int, str]], lost: int, doubled: int, *, is_wrong: bool
) -> None:
    findings = Findings()
    names = ("record_offset", "incarnation", "outcome")
    rows = [{"partition": 0, **dict(zip(names, one, strict=True))} for one in booked]
    check_ledger(findings, rows, Expectation(outcomes={(0, 0): "scored", (0, 1): "wrong_shape"}))
    assert (findings.lost, findings.doubled) == (lost, doubled)
    assert bool(findings.wrong) == is_wrong


@pytest.mark.parametrize(
    ("lag", "committed", "fault"),
    [
        (0, 9, None),
        (1, 9, "partitions with a lag in v_ingest_lag"),
        (None, 9, "partitions with a lag in v_ingest_lag"),
        (0, 8, "partitions with a lag by the group's committed offsets"),
        (0, None, "partitions with a lag by the group's committed offsets"),
    ],
)
def test_the_checker_sees_a_partition_that_does_not_drain(
    lag: int | None, committed: int | None, fault: str | None
) -> None:
    findings = Findings()
    check_lag(findings, [{"partition": 0, "lag": lag}], {0: committed}, {0: 9})
    assert [one.split(":")[0] for one in findings.wrong] == ([fault] if fault else [])


@pytest.mark.parametrize("early_s", [-1, 1])
def test_the_checker_sees_a_job_that_was_run_before_it_was_due(early_s: int) -> None:
    findings, now = Findings(), datetime.now(UTC)
    run = {"job": "one", "owner": "skewed-1", "started_at": now, "scheduled_for": now + timedelta(seconds=early_s)}
    check_jobs(findings, [run, {**run, "owner": "right-1", "scheduled_for": now}], ["skewed-"])
    assert bool(findings.wrong) == (early_s > 0)
    assert (findings.runs, findings.runs_of_skewed) == (2, 1)


def told(event: str, task: str, interaction: str = "i") -> Record:
    value = json.dumps({"interaction_id": interaction, "revision": 1, "task_id": task}).encode()
    return Record("tasks", 0, 0, None, value, (("event-id", event.encode()),))


TASK = {"event_id": "e", "state": "done", "judged": True}
STORED = {"interaction_id": "i", "revision": 1}


@pytest.mark.parametrize(
    ("records", "lost", "fault"),
    [
        ([told("e", "t"), told("e", "t")], [], None),
        ([], [], "review tasks that were not told"),
        ([told("e", "t"), told("f", "u")], ["f"], "answers told under two task ids"),
        ([told("e", "t"), told("f", "u", "j")], ["f"], "told tasks of an answer that is not stored"),
        ([told("e", "t"), told("f", "t")], [], "events of no review task"),
        ([told("e", "t"), told("f", "t")], ["f"], None),
    ],
    ids=["told again", "not told", "two ids", "of nothing", "of no task", "not chosen again"],
)
def test_the_checker_sees_what_is_wrong_with_what_was_told(
    records: Sequence[Record], lost: Sequence[str], fault: str | None
) -> None:
    findings = Findings()
    check_tasks(findings, records, [TASK], [STORED], lost)
    assert [one.split(":")[0] for one in findings.wrong] == ([fault] if fault else [])
