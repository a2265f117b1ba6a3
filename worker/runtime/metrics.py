"""Every metric of a worker, with its name, its unit and its meaning. Callers state facts and need not know Prometheus.

The exposition also has what the operating system says of the process (``process_*``: memory, file descriptors, CPU).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from itertools import product

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.registry import Collector

from gasp_core.grounding import AnswerSkip
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from worker.rules.claims import LossReason, LostOffsets
from worker.rules.opinion import OpinionLabel
from worker.rules.pieces import ClosedBy, PieceSkip
from worker.rules.settlement import Outcome, Settled
from worker.rules.verdict import ALL_APPS, Threshold
from worker.runtime.renamed_metrics import WithOldNames
from worker.settings.channels import CHANNELS
from worker.settings.exports import DESTINATIONS
from worker.store.leases import Backlog
from worker.store.traces import OpenTraces

# OpinionLabel values where a fact has no name of its own.
NO_REASON = "none"
NO_OPINION = "failed"
# An app is what a message says, so that anybody could add series without end.
MOST_NAMED_APPS = 50
MOST_OTHER_APPS = 10_000
# App, scope and version of all apps with a threshold that are not named.
OTHER_APPS = ("other", "other", "")

STAGE_BUCKETS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
BATCH_BUCKETS_MESSAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


class Stage(StrEnum):
    """Where the time of a message goes.

    Most are stages of a batch. ``assemble`` puts traces together that are due, and ``attribution`` is one job.
    """

    POLL = "poll"
    DECODE = "decode"
    KNOWN = "known"
    SCORE = "score"
    JUDGE = "judge"
    DEAD_LETTERS = "dead_letters"
    STORE = "store"
    COMMIT = "commit"
    ASSEMBLE = "assemble"
    ATTRIBUTION = "attribution"


class MemoryStep(StrEnum):
    """What was done when the model ran out of memory."""

    HALVED = "halved"
    SINGLE = "single"
    TRUNCATED = "truncated"
    REFUSED = "refused"


class OutboxOutcome(StrEnum):
    """The outcome of an event about a review task: sent, found because an earlier attempt had sent it, or given up."""

    SENT = "sent"
    FOUND = "found"
    FAILED = "failed"


class Metrics:
    """The metrics of one worker, in a registry of their own. Any thread may call any method.

    Labels are bounded: partitions that the worker owns, fixed words, and some of the apps that have a threshold. What
    an alert may be set on is there from the start, at zero, so that its first increase is seen.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._define_lag()
        self._define_batches()
        self._define_faults()
        self._define_judgement()
        self._define_traces()
        self._define_outbox()
        self._define_exports()
        self._define_opinions()
        self._begin_at_zero()
        ProcessCollector(registry=self._registry)

    def _define_lag(self) -> None:
        place = ("topic", "partition")
        self._lag = Gauge(
            "gasp_lag_messages",
            "Messages of an owned partition that are logged and not yet settled.",
            place,
            registry=self._registry,
        )
        self._oldest_age = Gauge(
            "gasp_oldest_unscored_age_seconds",
            "Seconds since the oldest unsettled message of an owned partition was logged; 0 when none waits.",
            place,
            registry=self._registry,
        )
        self._rebalances = Counter(
            "gasp_rebalances_total",
            "Rebalances of the consumer group that gave this worker partitions or took some away.",
            registry=self._registry,
        )

    def _define_batches(self) -> None:
        self._batch = Histogram(
            "gasp_batch_messages", "Messages in a batch.", buckets=BATCH_BUCKETS_MESSAGES, registry=self._registry
        )
        self._in_flight = Gauge(
            "gasp_in_flight_bytes",
            "Bytes of the messages that are held in memory by the batch that is being settled.",
            registry=self._registry,
        )
        self._tokens = Counter(
            "gasp_scored_tokens_total", "Tokens of contexts and answers that were scored.", registry=self._registry
        )
        self._stage = Histogram(
            "gasp_stage_seconds",
            "Seconds that a stage took: for a batch, or for one job where the stage is attribution.",
            ("stage",),
            buckets=STAGE_BUCKETS_S,
            registry=self._registry,
        )
        self._settled = Counter(
            "gasp_settled_messages_total",
            "Results of messages and of traces that were closed, by outcome and reason (none for scored, labelled and "
            "collected); most have one.",
            ("outcome", "reason"),
            registry=self._registry,
        )

    def _define_faults(self) -> None:
        self._retries = Counter(
            "gasp_retries_total",
            "Retries of an action that failed because the database or the broker was away.",
            ("action",),
            registry=self._registry,
        )
        self._fenced = Counter(
            "gasp_fenced_writes_total",
            "Writes of a partition that were refused because another worker had moved it on.",
            registry=self._registry,
        )
        self._abandoned = Counter(
            "gasp_abandoned_batches_total",
            "Batches that were given up at a stop; the partition's next owner reads them again.",
            registry=self._registry,
        )
        self._lost_ranges = Counter(
            "gasp_lost_offset_ranges_total",
            "Ranges of offsets that were not read and cannot be any more.",
            ("reason",),
            registry=self._registry,
        )
        self._lost_messages = Counter(
            "gasp_lost_messages_total",
            "Messages in these ranges, where it is known; offsets that never held a message count, too.",
            ("reason",),
            registry=self._registry,
        )
        self._memory_steps = Counter(
            "gasp_out_of_memory_steps_total",
            "Steps that were taken because scoring ran out of memory, by what was done.",
            ("step",),
            registry=self._registry,
        )

    def _define_judgement(self) -> None:
        version = ("app", "scope", "version")
        self._jobs = Gauge(
            "gasp_attribution_jobs",
            "Attribution jobs in the database that are not done, by state.",
            ("state",),
            registry=self._registry,
        )
        self._flag_below = Gauge(
            "gasp_threshold_flag_below",
            "Score below which a sentence is flagged, for each threshold version in force.",
            version,
            registry=self._registry,
        )
        self._attribute_below = Gauge(
            "gasp_threshold_attribute_below",
            "Lowest score below which an answer is attributed, for each threshold version in force.",
            version,
            registry=self._registry,
        )
        # In the order in which they were last told of.
        self._thresholds: dict[str | None, Threshold] = {}
        self._left_out: dict[str | None, Threshold] = {}
        self._calibrations = Gauge(
            "gasp_calibration_runs",
            "Recalibration runs of the last seven days in the database, by outcome and reason.",
            ("outcome", "reason"),
            registry=self._registry,
        )
        self._calibrated: set[tuple[str, str]] = set()
        self._build = Info(
            "gasp_build",
            "Always 1; version of the worker and identity of its scorer, as labels.",
            registry=self._registry,
        )

    def _define_traces(self) -> None:
        self._open_traces = Gauge(
            "gasp_open_traces",
            "Traces in the database that wait for steps, by whether their uppermost step is there.",
            ("root",),
            registry=self._registry,
        )
        self._oldest_trace = Gauge(
            "gasp_oldest_open_trace_age_seconds",
            "Seconds since the first step of the oldest trace came that waits for others; 0 when none waits.",
            registry=self._registry,
        )
        self._closed_traces = Counter(
            "gasp_closed_traces_total",
            "Traces that were closed, by what let nothing more be waited for.",
            ("closed_by",),
            registry=self._registry,
        )

    def _define_outbox(self) -> None:
        self._outbox = Gauge(
            "gasp_outbox_events",
            "Events about review tasks in the database that are not done, by channel and state.",
            ("channel", "state"),
            registry=self._registry,
        )
        self._relayed = Counter(
            "gasp_relayed_events_total",
            "Events about review tasks that this worker has done with, by channel and outcome.",
            ("channel", "outcome"),
            registry=self._registry,
        )
        self._unread_choices = Counter(
            "gasp_unread_choices_total",
            "Choices and ratings in annotations that are not about our labels and are passed over.",
            registry=self._registry,
        )

    def _define_exports(self) -> None:
        self._exported = Counter(
            "gasp_exported_events_total",
            "Events about results that were sent to where the exchange came from, or given up, by system and outcome.",
            ("destination", "outcome"),
            registry=self._registry,
        )

    def _define_opinions(self) -> None:
        self._opinions = Counter(
            "gasp_second_opinions_total",
            "Flagged sentences with a second opinion, by its label; failed if it was given up.",
            ("label",),
            registry=self._registry,
        )

    def _begin_at_zero(self) -> None:
        for label in (*OpinionLabel, NO_OPINION):
            self._opinions.labels(label)
        self.outbox_backlogs({})
        for channel, outcome in product(CHANNELS, OutboxOutcome):
            self._relayed.labels(channel, outcome)
        for destination, result in product(DESTINATIONS, (OutboxOutcome.SENT, OutboxOutcome.FAILED)):
            self._exported.labels(destination, result)
        for stage in Stage:
            self._stage.labels(stage)
        for step in MemoryStep:
            self._memory_steps.labels(step)
        for reason in LossReason:
            self._lost_ranges.labels(reason)
            self._lost_messages.labels(reason)
        for done in (Outcome.SCORED, Outcome.LABELLED, Outcome.COLLECTED):
            self._settled.labels(done, NO_REASON)
        for skip in (*AnswerSkip, *SkipReason, *PieceSkip):
            self._settled.labels(Outcome.SKIPPED, skip)
        for reject in RejectReason:
            self._settled.labels(Outcome.DEAD_LETTERED, reject)
        self._begin_traces()

    def _begin_traces(self) -> None:
        for closed_by in ClosedBy:
            self._closed_traces.labels(closed_by)
        self.open_traces(OpenTraces())

    def lag(self, topic: str, partition: int, messages: int) -> None:
        """So many messages of an owned partition are logged and not yet settled."""
        self._lag.labels(topic, partition).set(messages)

    def oldest_unscored(self, topic: str, partition: int, logged_at: datetime | None) -> None:
        """The oldest unsettled message of an owned partition was logged then; None if none waits.

        Its age is taken anew at every scrape, so that it grows while nothing moves.
        """
        age = self._oldest_age.labels(topic, partition)
        age.set_function(lambda: 0.0 if logged_at is None else max(0.0, time.time() - logged_at.timestamp()))

    def revoked(self, topic: str, partition: int) -> None:
        """A partition is no longer ours: its lag is another worker's to tell."""
        self._lag.remove(topic, partition)
        self._oldest_age.remove(topic, partition)

    def rebalanced(self) -> None:
        """Partitions came or went."""
        self._rebalances.inc()

    def batch_launched(self, messages: int, size_bytes: int) -> None:
        """A batch is being settled; ``size_bytes`` is what its records hold in memory."""
        self._batch.observe(messages)
        self._in_flight.inc(size_bytes)

    def batch_landed(self, size_bytes: int) -> None:
        """The batch in flight is over, in whatever way; its bytes are given back."""
        self._in_flight.dec(size_bytes)

    def batch_abandoned(self) -> None:
        """A batch was given up at a stop."""
        self._abandoned.inc()

    def tokens_scored(self, tokens: int) -> None:
        """So many tokens of contexts and answers were scored."""
        self._tokens.inc(tokens)

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Measure how long the block takes, whether it ends well or with an exception."""
        return self._stage.labels(stage).time()

    def settled(self, settled: Settled) -> None:
        """A transaction gave these outcomes and was refused for these partitions."""
        for (outcome, reason), results in settled.counts.items():
            self._settled.labels(outcome, reason or NO_REASON).inc(results)
        self._fenced.inc(len(settled.fenced))

    def unread_choices(self, number: int) -> None:
        """So much of what reviewers said is not about our labels."""
        self._unread_choices.inc(number)

    def retried(self, action: str) -> None:
        """An action met a transient fault and will be tried again. ``action`` is a fixed word of the code."""
        self._retries.labels(action).inc()

    def passed_over(self, lost: LostOffsets) -> None:
        """These offsets will never be read. How many messages there were in a topic that is gone is not known."""
        self._lost_ranges.labels(lost.reason).inc()
        if lost.to_offset is not None:
            self._lost_messages.labels(lost.reason).inc(lost.to_offset - lost.from_offset)

    def out_of_memory(self, step: MemoryStep) -> None:
        """Scoring ran out of memory, and this was done."""
        self._memory_steps.labels(step).inc()

    def attribution_backlog(self, backlog: Backlog) -> None:
        """So many attribution jobs wait, run and have failed. Those that are done are not counted: they pile up."""
        for state in ("waiting", "running", "failed"):
            self._jobs.labels(state).set(getattr(backlog, state))

    def open_traces(self, found: OpenTraces) -> None:
        """So many traces wait for steps."""
        self._open_traces.labels("seen").set(found.open - found.without_root)
        self._open_traces.labels("missing").set(found.without_root)
        first_at = found.oldest_at
        self._oldest_trace.set_function(
            lambda: 0.0 if first_at is None else max(0.0, time.time() - first_at.timestamp())
        )

    def traces_closed(self, closed: Mapping[ClosedBy, int], results: Mapping[tuple[Outcome, str | None], int]) -> None:
        """A transaction closed these traces, with these results, which count as those of messages do."""
        for closed_by, count in closed.items():
            self._closed_traces.labels(closed_by).inc(count)
        self.settled(Settled(dict(results)))

    def outbox_backlogs(self, backlogs: Mapping[str, Backlog]) -> None:
        """So many events of each channel wait, run and have failed; none of a channel that is not there."""
        for channel in CHANNELS:
            for state in ("waiting", "running", "failed"):
                self._outbox.labels(channel, state).set(getattr(backlogs.get(channel, Backlog()), state))

    def relayed(self, channel: str, outcome: OutboxOutcome, events: int) -> None:
        """So many events of a channel came to their end."""
        self._relayed.labels(channel, outcome).inc(events)

    def exported(self, destination: str, outcome: OutboxOutcome) -> None:
        """The results of an answer were sent to a system, or given up."""
        self._exported.labels(destination, outcome).inc()

    def second_opinion(self, label: OpinionLabel | None) -> None:
        """A second opinion was stored; None: one was given up."""
        self._opinions.labels(NO_OPINION if label is None else label).inc()

    def thresholds(self, in_force: Mapping[str | None, Threshold], apps: Iterable[str] = ()) -> None:
        """These thresholds are in force, by app (None: every app without its own); those ``apps`` not there have none.

        The apps that were named last are shown, at most MOST_NAMED_APPS. Of the others the highest bounds are shown.
        """
        for asked in apps:
            if asked not in in_force:
                self._hide_threshold(asked)
        for app, threshold in in_force.items():
            if self._thresholds.get(app) != threshold:
                self._hide_threshold(app)
                self._show_threshold(threshold)
            self._thresholds[app] = self._thresholds.pop(app, threshold)
        self._bound_thresholds()

    def _show_threshold(self, threshold: Threshold) -> None:
        labels = _threshold_labels(threshold)
        self._flag_below.labels(*labels).set(threshold.flag_below)
        self._attribute_below.labels(*labels).set(threshold.attribute_below)

    def _hide_threshold(self, app: str | None) -> None:
        self._left_out.pop(app, None)
        threshold = self._thresholds.pop(app, None)
        if threshold is not None:
            labels = _threshold_labels(threshold)
            self._flag_below.remove(*labels)
            self._attribute_below.remove(*labels)

    def _bound_thresholds(self) -> None:
        own = [app for app in self._thresholds if app is not None]
        for oldest in own[: max(0, len(own) - MOST_NAMED_APPS)]:
            threshold = self._thresholds[oldest]
            self._hide_threshold(oldest)
            self._left_out[oldest] = threshold
        for forgotten in list(self._left_out)[: max(0, len(self._left_out) - MOST_OTHER_APPS)]:
            del self._left_out[forgotten]
        if own[MOST_NAMED_APPS:]:
            others = self._left_out.values()
            self._flag_below.labels(*OTHER_APPS).set(max(one.flag_below for one in others))
            self._attribute_below.labels(*OTHER_APPS).set(max(one.attribute_below for one in others))

    def calibrations(self, counts: Mapping[tuple[str, str], int]) -> None:
        """So many recalibrations of the last seven days had this outcome and reason; others are none any more."""
        for labels, runs in counts.items():
            self._calibrations.labels(*labels).set(runs)
        for labels in self._calibrated - counts.keys():
            self._calibrations.remove(*labels)
        self._calibrated = set(counts)

    def built(self, version: str, scorer: str) -> None:
        """The version that runs, and its scorer's identity: empty in a process that scores nothing."""
        self._build.info({"version": version, "scorer": scorer})

    def render(self) -> tuple[bytes, str]:
        """The exposition in Prometheus's text format, and its content type."""
        return generate_latest(WithOldNames(_WithoutBirths(self._registry))), CONTENT_TYPE_PLAIN_0_0_4


class _WithoutBirths(Collector):
    """A registry without the time at which each series began, which would double the series and tells nothing here.

    The library can leave them out by itself, but only for the process as a whole.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def _threshold_labels(threshold: Threshold) -> tuple[str, str, str]:
    """App, scope and version. The scope keeps an app that is called ``*`` apart from all apps."""
    scope = "every_other" if threshold.app is None else "own"
    return (threshold.app or ALL_APPS, scope, str(threshold.version))
