"""docs/operations.md against the code: every exit status, every event that warns, every metric."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from prometheus_client.registry import Collector

from gasp_core.grounding import AnswerSkip
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from worker.rules.pieces import PieceSkip
from worker.rules.settlement import Outcome
from worker.runtime.metrics import Metrics
from worker.runtime.watchdog import WEDGED_STATUS
from worker.settings.settings import PREFIX, Settings
from worker.store.ledger import DUPLICATE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
LEVELS = ("warning", "error", "critical")
# Whoever configures the logs gives it this name; the others are written where something happens.
LIBRARY_EVENT = "library_log"
# Outcomes of recalibrations, which are another metric's.
CALIBRATION = {"refused"}
SERIES_OF_HISTOGRAMS = r"_(bucket|sum|count)$"


def section(title: str) -> list[list[str]]:
    """The rows of a section's table, below its head."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines[2:]]


@cache
def calls() -> tuple[ast.Call, ...]:
    """Every call in the worker's code."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "worker").rglob("*.py"))]
    return tuple(node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))


def constants(node: ast.expr, kind: type) -> set[object]:
    found = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return {value for value in found if type(value) is kind}


def events() -> dict[str, str]:
    """Every event that is logged at a level of concern, with the highest of its levels."""
    found: dict[str, list[str]] = defaultdict(list)
    for call in calls():
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "log" and call.func.attr in LEVELS:
            for name in constants(call.args[0], str):
                found[str(name)].append(call.func.attr)
    return {name: max(levels, key=LEVELS.index) for name, levels in found.items()}


def exit_statuses() -> set[object]:
    """What ``SystemExit``, ``typer.Exit`` and ``os._exit`` are called with."""
    ends = (call for call in calls() if ast.unparse(call.func) in {"SystemExit", "typer.Exit", "os._exit"})
    return {status for call in ends for status in constants(call.args[0], int)} | {WEDGED_STATUS}


def metrics() -> dict[str, tuple[str, str]]:
    """Type and labels of every metric of ours, by the name of its series."""
    metrics = Metrics()
    metrics.built("1.0", "a scorer")
    collectors: dict[str, Collector] = metrics._registry._names_to_collectors
    found = {}
    for family in metrics._registry.collect():
        if family.name.startswith("gasp_"):
            suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
            named = family.samples[0].labels if family.type == "info" else vars(collectors[family.name])["_labelnames"]
            found[family.name + suffix] = (family.type, ", ".join(named))
    return found


def test_the_code_has_what_the_page_is_held_against() -> None:
    assert {"offsets_lost", "transient_fault", "kafka_reachable", "wedged"} <= set(events())
    assert {0, 1, 2, 70} <= exit_statuses()
    assert "gasp_lag_messages" in metrics()


def test_every_exit_status_is_on_the_page() -> None:
    assert exit_statuses() <= {int(row[0].split(" ")[0]) for row in section("Exit statuses")}


def test_every_event_that_warns_is_on_the_page_with_its_level_and_no_other_is() -> None:
    listed = {name: row[1] for row in section("Log events") for name in re.findall(r"`(\w+)`", row[0])}
    assert listed == events() | {LIBRARY_EVENT: "warning"}


def test_every_metric_is_on_the_page_with_its_type_and_labels_and_no_other_is() -> None:
    listed = {row[0].strip("`"): (row[1], row[2]) for row in section("Metrics")}
    assert listed == metrics()


def test_every_alert_asks_for_metrics_and_labels_that_there_are() -> None:
    known = metrics()
    alerts = [row[0] for row in section("Alerts")]
    assert len(alerts) > 10
    for name, labels in re.findall(r"(gasp_\w+)(?:\{(\w+)!?=)?", " ".join(alerts)):
        metric = name if name in known else re.sub(SERIES_OF_HISTOGRAMS, "", name)
        assert metric in known
        assert not labels or labels in known[metric][1]


def test_every_outcome_and_reason_of_an_alert_is_one() -> None:
    reasons = {*AnswerSkip, *SkipReason, *PieceSkip, *RejectReason, DUPLICATE}
    alerts = " ".join(row[0] for row in section("Alerts"))
    named = {label: re.findall(rf'[{{,]{label}!?="(\w+)"', alerts) for label in ("outcome", "reason")}
    assert {"scored", "collected", "labelled"} <= set(named["outcome"])
    assert {"tombstone", "duplicate"} <= set(named["reason"])
    assert set(named["reason"]) <= reasons
    assert set(named["outcome"]) - CALIBRATION <= set(Outcome)
    (pattern,) = re.findall(r'reason=~"([^"]+)"', alerts)
    row = next(row for row in section("Alerts") if pattern in row[0])
    meant = {reason for reason in (*AnswerSkip, *SkipReason, *PieceSkip) if re.fullmatch(pattern, reason)}
    assert meant == set(re.findall(r"`(\w+)`", row[2]))


@pytest.mark.parametrize("alert", [row[0].strip("`") for row in section("Alerts")])
def test_the_brackets_of_an_alert_match(alert: str) -> None:
    for opening, closing in ("()", "[]", "{}"):
        assert alert.count(opening) == alert.count(closing)


def test_every_setting_on_the_page_is_one() -> None:
    named = set(re.findall(rf"\b{PREFIX}[A-Z0-9_]+", PAGE))
    assert named
    assert named <= {PREFIX + field.upper() for field in Settings.model_fields}
