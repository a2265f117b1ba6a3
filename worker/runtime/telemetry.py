"""What a worker's parts report to: figures, signs of life, and readiness."""

from __future__ import annotations

from dataclasses import dataclass, field

from worker.runtime.health import Readiness
from worker.runtime.metrics import Metrics
from worker.runtime.watchdog import Liveness


@dataclass(frozen=True, slots=True)
class Telemetry:
    """One set for a process; a part that is run by itself may have its own."""

    metrics: Metrics = field(default_factory=Metrics)
    liveness: Liveness = field(default_factory=Liveness)
    readiness: Readiness = field(default_factory=Readiness)
