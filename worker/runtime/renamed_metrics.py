"""Metrics under the names of the previous release as well, for dashboards that were made for it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from worker.rules.verdict import ALL_APPS

# Removed in the next release; by the family's name of now, without the suffix of a counter.
OLD_NAMES = {
    "gasp_lost_offset_ranges": "gasp_offset_gaps",
    "gasp_lost_messages": "gasp_offset_gap_messages",
    "gasp_threshold_flag_below": "gasp_threshold_flag_below_nats",
    "gasp_threshold_attribute_below": "gasp_threshold_attribute_below_nats",
    "gasp_relayed_events": "gasp_outbox_settled_events",
}
# What stood for all apps in the label ``app``.
OLD_ALL_APPS = "default"


class WithOldNames(Collector):
    """The families of ``collector``, and each that was renamed a second time under its old name."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Every family of now, and those of the previous release."""
        for family in self._collector.collect():
            yield family
            if family.name in OLD_NAMES:
                yield _renamed(family, OLD_NAMES[family.name])


def _renamed(family: Metric, old: str) -> Metric:
    renamed = Metric(old, f"Old name of {family.name}, removed in the next release.", family.type)
    for sample in family.samples:
        labels = dict(sample.labels)
        if labels.get("scope") == "every_other" and labels.get("app") == ALL_APPS:
            labels["app"] = OLD_ALL_APPS
        renamed.add_sample(old + sample.name.removeprefix(family.name), labels, sample.value)
    return renamed
