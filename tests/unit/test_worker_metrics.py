"""Metrics: named, explained, and fed by facts."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import REGISTRY, Metric
from prometheus_client.parser import text_string_to_metric_families

from gasp_core.grounding import AnswerSkip
from schemas.reject_reason import RejectReason
from worker.rules.claims import LossReason, LostOffsets
from worker.rules.settlement import Outcome, Settled
from worker.rules.verdict import Threshold
from worker.runtime.metrics import MemoryStep, Metrics, OutboxOutcome, Stage
from worker.runtime.renamed_metrics import OLD_NAMES
from worker.store.leases import Backlog

NOW = datetime(2026, 11, 30, tzinfo=UTC)
# How the unit at the end of a name is said in its help text; a counter of things names the things.
UNIT_WORDS = {
    "seconds": "seconds",
    "bytes": "bytes",
    "messages": "messages",
    "below": "score below which",
    "tokens_total": "tokens",
    "messages_total": "messages",
    "jobs": "jobs",
    "events": "events",
    "events_total": "events",
    "opinions_total": "opinion",
    "choices_total": "choices",
    "runs": "runs",
    "rebalances_total": "rebalances",
    "retries_total": "retries",
    "writes_total": "writes",
    "batches_total": "batches",
    "ranges_total": "ranges",
    "steps_total": "steps",
    "traces": "traces",
    "traces_total": "traces",
    "info": "always 1",
}


def families(metrics: Metrics) -> dict[str, Metric]:
    """The families in the exposition, by the name that an operator reads."""
    text = metrics.render()[0].decode()
    found = text_string_to_metric_families(text)
    return {one.name + "_total" * (one.type == "counter"): one for one in found}


def own_families(metrics: Metrics) -> dict[str, Metric]:
    """Those of ours, without the old names of some."""
    return {
        name: family
        for name, family in families(metrics).items()
        if name.startswith("gasp_") and name.removesuffix("_total") not in OLD_NAMES.values()
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    """A sample's value; None if there is no such series."""
    samples = [sample for family in families(metrics).values() for sample in family.samples]
    found = [sample.value for sample in samples if sample.name == name and sample.labels == labels]
    assert len(found) <= 1
    return found[0] if found else None


def version_of(app: str | None, version: int, flag_below: float) -> Threshold:
    return Threshold(version, app, version, flag_below, flag_below + 0.5, "labels", NOW)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_every_metric_is_named_after_its_unit_and_explained_with_it(metrics: Metrics) -> None:
    found = own_families(metrics)
    assert "gasp_lag_messages" in found
    for name, family in found.items():
        ending = next((ending for ending in UNIT_WORDS if name.endswith(f"_{ending}")), None)
        assert ending is not None, name
        assert UNIT_WORDS[ending] in family.documentation.lower(), name
        assert family.documentation.endswith("."), name
        assert re.fullmatch(r"gasp(_[a-z]+)+", name)
        assert (family.type == "counter") == name.endswith("_total"), name


def test_all_other_metrics_are_of_the_process(metrics: Metrics) -> None:
    old = {name for name in families(metrics) if name.removesuffix("_total") in OLD_NAMES.values()}
    others = families(metrics).keys() - own_families(metrics).keys() - old
    assert {"process_resident_memory_bytes", "process_open_fds"} <= others
    assert all(name.startswith("process_") for name in others)


def test_two_workers_in_a_process_share_nothing(metrics: Metrics) -> None:
    other = Metrics()
    other.rebalanced()
    assert (value(metrics, "gasp_rebalances_total"), value(other, "gasp_rebalances_total")) == (0, 1)
    assert not any(family.name.startswith("gasp") for family in REGISTRY.collect())


def test_the_exposition_is_the_text_format_without_times_of_birth(metrics: Metrics) -> None:
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain; version=0.0.4")
    assert b"_created" not in body


def test_what_an_alert_may_be_set_on_begins_at_zero(metrics: Metrics) -> None:
    assert value(metrics, "gasp_fenced_writes_total") == 0
    assert value(metrics, "gasp_abandoned_batches_total") == 0
    assert all(value(metrics, "gasp_lost_offset_ranges_total", reason=reason) == 0 for reason in LossReason)
    assert all(value(metrics, "gasp_out_of_memory_steps_total", step=step) == 0 for step in MemoryStep)
    assert all(value(metrics, "gasp_stage_seconds_count", stage=stage) == 0 for stage in Stage)
    for outcome, reasons in ((Outcome.SKIPPED, AnswerSkip), (Outcome.DEAD_LETTERED, RejectReason)):
        for reason in reasons:
            assert value(metrics, "gasp_settled_messages_total", outcome=outcome, reason=reason) == 0


def test_lag_and_age_are_kept_by_partition_until_it_is_revoked(metrics: Metrics) -> None:
    for partition, messages in ((0, 5), (1, 70)):
        metrics.lag("t", partition, messages)
        metrics.oldest_unscored("t", partition, datetime.now(UTC) - timedelta(seconds=90))
    assert value(metrics, "gasp_lag_messages", topic="t", partition="1") == 70
    metrics.revoked("t", 1)
    for name in ("gasp_lag_messages", "gasp_oldest_unscored_age_seconds"):
        assert value(metrics, name, topic="t", partition="0") is not None
        assert value(metrics, name, topic="t", partition="1") is None


def test_a_partition_of_which_nothing_is_known_can_be_revoked(metrics: Metrics) -> None:
    metrics.revoked("t", 7)
    assert value(metrics, "gasp_lag_messages", topic="t", partition="7") is None


def test_the_age_of_the_oldest_message_grows_by_itself_and_is_zero_when_none_waits(metrics: Metrics) -> None:
    def age() -> float:
        return value(metrics, "gasp_oldest_unscored_age_seconds", topic="t", partition="0") or 0.0

    metrics.oldest_unscored("t", 0, datetime.now(UTC) - timedelta(seconds=90))
    first = age()
    assert 90 <= first < 120
    assert age() > first
    metrics.oldest_unscored("t", 0, datetime.now(UTC) + timedelta(hours=1))
    assert age() == 0
    metrics.oldest_unscored("t", 0, datetime.now(UTC) - timedelta(seconds=90))
    metrics.oldest_unscored("t", 0, None)
    assert age() == 0


def test_a_batch_holds_its_bytes_from_launch_to_landing(metrics: Metrics) -> None:
    metrics.batch_launched(16, 4096)
    assert value(metrics, "gasp_in_flight_bytes") == 4096
    metrics.batch_landed(4096)
    assert value(metrics, "gasp_in_flight_bytes") == 0
    assert value(metrics, "gasp_batch_messages_bucket", le="8.0") == 0
    assert value(metrics, "gasp_batch_messages_bucket", le="16.0") == 1
    assert value(metrics, "gasp_batch_messages_sum") == 16


def test_a_stage_is_measured_also_when_it_fails(metrics: Metrics) -> None:
    with metrics.stage(Stage.STORE):
        pass
    with pytest.raises(LookupError), metrics.stage(Stage.STORE):
        raise LookupError
    assert value(metrics, "gasp_stage_seconds_count", stage="store") == 2
    assert value(metrics, "gasp_stage_seconds_count", stage="score") == 0
    assert 0 < (value(metrics, "gasp_stage_seconds_sum", stage="store") or 0) < 10


def test_stages_of_two_threads_are_measured_apart(metrics: Metrics) -> None:
    inside, leave = threading.Event(), threading.Event()

    def attribute() -> None:
        with metrics.stage(Stage.ATTRIBUTION):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=attribute)
    thread.start()
    assert inside.wait(10)
    with metrics.stage(Stage.POLL):
        pass
    assert value(metrics, "gasp_stage_seconds_count", stage="attribution") == 0
    leave.set()
    thread.join()
    assert value(metrics, "gasp_stage_seconds_count", stage="attribution") == 1
    assert value(metrics, "gasp_stage_seconds_count", stage="poll") == 1


def test_outcomes_are_counted_by_reason_and_fenced_partitions_as_writes(metrics: Metrics) -> None:
    counts: dict[tuple[Outcome, str | None], int] = {
        (Outcome.SCORED, None): 12,
        (Outcome.SKIPPED, AnswerSkip.REFUSAL): 3,
        (Outcome.DEAD_LETTERED, RejectReason.TOO_LARGE): 1,
    }
    metrics.settled(Settled(counts, (("t", 0), ("t", 4))))
    metrics.settled(Settled({(Outcome.SCORED, None): 1}))
    assert value(metrics, "gasp_settled_messages_total", outcome="scored", reason="none") == 13
    assert value(metrics, "gasp_settled_messages_total", outcome="skipped", reason="refusal") == 3
    assert value(metrics, "gasp_settled_messages_total", outcome="dead_lettered", reason="too_large") == 1
    assert value(metrics, "gasp_fenced_writes_total") == 2


def test_a_gap_counts_once_and_with_the_messages_that_it_spans(metrics: Metrics) -> None:
    metrics.passed_over(LostOffsets(100, 350, LossReason.RETENTION))
    metrics.passed_over(LostOffsets(400, 450, LossReason.RETENTION))
    assert value(metrics, "gasp_lost_offset_ranges_total", reason="retention") == 2
    assert value(metrics, "gasp_lost_messages_total", reason="retention") == 300
    assert value(metrics, "gasp_lost_offset_ranges_total", reason="topic_recreated") == 0


def test_other_events_are_counted_where_they_belong(metrics: Metrics) -> None:
    metrics.tokens_scored(800)
    metrics.tokens_scored(200)
    metrics.retried("settle")
    metrics.out_of_memory(MemoryStep.HALVED)
    metrics.batch_abandoned()
    metrics.rebalanced()
    assert value(metrics, "gasp_scored_tokens_total") == 1000
    assert value(metrics, "gasp_retries_total", action="settle") == 1
    assert value(metrics, "gasp_out_of_memory_steps_total", step="halved") == 1
    assert value(metrics, "gasp_abandoned_batches_total") == 1
    assert value(metrics, "gasp_rebalances_total") == 1


def test_the_backlog_has_a_gauge_for_each_state_but_done(metrics: Metrics) -> None:
    metrics.attribution_backlog(Backlog(waiting=4, running=1, failed=2, done=9))
    metrics.attribution_backlog(Backlog(waiting=3, running=1, failed=2, done=10))
    found = {sample.labels["state"]: sample.value for sample in families(metrics)["gasp_attribution_jobs"].samples}
    assert found == {"waiting": 3, "running": 1, "failed": 2}


def test_only_the_thresholds_in_force_are_shown(metrics: Metrics) -> None:
    metrics.thresholds({None: version_of(None, 1, 0.2), "bot": version_of("bot", 1, 0.3)})
    metrics.thresholds({None: version_of(None, 1, 0.2), "bot": version_of("bot", 2, 0.4)})
    found = {
        (sample.labels["app"], sample.labels["version"]): sample.value
        for sample in families(metrics)["gasp_threshold_flag_below"].samples
    }
    assert found == {("*", "1"): 0.2, ("bot", "2"): 0.4}
    labels = {"app": "bot", "scope": "own", "version": "2"}
    assert value(metrics, "gasp_threshold_attribute_below", **labels) == 0.9


def test_an_app_that_follows_the_default_again_is_no_longer_shown(metrics: Metrics) -> None:
    metrics.thresholds({None: version_of(None, 1, 0.2), "bot": version_of("bot", 1, 0.3)}, ["bot"])
    metrics.thresholds({None: version_of(None, 1, 0.2)}, ["shop"])
    assert len(families(metrics)["gasp_threshold_flag_below"].samples) == 2
    metrics.thresholds({None: version_of(None, 1, 0.2)}, ["bot"])
    assert len(families(metrics)["gasp_threshold_flag_below"].samples) == 1


def test_apps_are_named_up_to_a_number_and_the_others_are_one(metrics: Metrics) -> None:
    for number in range(300):
        app = f"app-{number}"
        metrics.thresholds({None: version_of(None, 1, 0.2), app: version_of(app, 1, 0.3)}, [app])
    found = [sample.labels["app"] for sample in families(metrics)["gasp_threshold_flag_below"].samples]
    assert sorted(found) == sorted(["*", "other", *(f"app-{number}" for number in range(250, 300))])
    assert value(metrics, "gasp_threshold_flag_below", app="other", scope="other", version="") == 0.3
    metrics.thresholds({"app-0": version_of("app-0", 1, 0.3)}, ["app-0"])
    assert len(families(metrics)["gasp_threshold_flag_below"].samples) == 52
    assert value(metrics, "gasp_threshold_flag_below", app="app-0", scope="own", version="1") == 0.3


def test_recalibrations_of_the_last_days_are_counted_by_outcome_until_they_are_older(metrics: Metrics) -> None:
    metrics.calibrations({("refused", "too_few_labels"): 2, ("new", "reached"): 1})
    metrics.calibrations({("refused", "too_few_labels"): 3})
    found = {(*sample.labels.values(), sample.value) for sample in families(metrics)["gasp_calibration_runs"].samples}
    assert found == {("refused", "too_few_labels", 3)}


def test_an_app_that_is_called_by_the_sign_of_all_apps_is_not_all_apps(metrics: Metrics) -> None:
    metrics.thresholds({None: version_of(None, 1, 0.2), "*": version_of("*", 1, 0.3)})
    name = "gasp_threshold_flag_below"
    assert value(metrics, name, app="*", scope="every_other", version="1") == 0.2
    assert value(metrics, name, app="*", scope="own", version="1") == 0.3


def test_the_build_is_told_by_labels(metrics: Metrics) -> None:
    metrics.built("0.2.0", "tiny@abc/float32")
    assert value(metrics, "gasp_build_info", version="0.2.0", scorer="tiny@abc/float32") == 1


def test_a_metric_that_was_renamed_is_there_under_its_old_name_too(metrics: Metrics) -> None:
    metrics.thresholds({None: version_of(None, 1, 0.2), "bot": version_of("bot", 3, 0.4)})
    metrics.passed_over(LostOffsets(5, 12, LossReason.RETENTION))
    metrics.relayed("kafka", OutboxOutcome.SENT, 4)
    text = metrics.render()[0].decode()
    for line in (
        'gasp_offset_gaps_total{reason="retention"} 1.0',
        'gasp_offset_gap_messages_total{reason="retention"} 7.0',
        'gasp_outbox_settled_events_total{channel="kafka",outcome="sent"} 4.0',
        'gasp_threshold_flag_below_nats{app="default",scope="every_other",version="1"} 0.2',
        'gasp_threshold_flag_below_nats{app="bot",scope="own",version="3"} 0.4',
        'gasp_threshold_flag_below{app="*",scope="every_other",version="1"} 0.2',
        'gasp_relayed_events_total{channel="kafka",outcome="sent"} 4.0',
    ):
        assert line in text.splitlines()
    assert set(OLD_NAMES) | set(OLD_NAMES.values()) <= {family.name for family in families(metrics).values()}
