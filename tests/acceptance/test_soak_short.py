"""The soak of `make soak` in two minutes, on Apache Kafka: every kind of blow once, each exact point of a kill once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.apache_kafka import KafkaCannotRun, fetch_jars
from tests.soak.chaos import MAX_TAKEOVER_S, MAX_TERM_EXIT_S
from tests.soak.checks import Findings, check_history, check_ledger
from tests.soak.database import Step
from tests.soak.expectation import Expectation

# Seven kills: one at any moment, and one at each of the six exact points.
SHORT = (
    *("--messages", "800", "--backlog", "400", "--partitions", "6", "--workers", "2", "--seed", "1"),
    *("--kills", "7", "--terms", "2", "--stops", "1", "--broker-restarts", "1", "--database-restarts", "1"),
    # Each kill is waited out by the group.
    *("--session-timeout-s", "3"),
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
