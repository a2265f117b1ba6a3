"""Where partitions end, as the broker last said: from the threads that poll to the one that writes it down."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AskedEnds:
    """Where partitions of a topic ended ``age_s`` seconds ago."""

    topic: str
    ends: Mapping[int, int]
    age_s: float


class PartitionEnds:
    """The last answer for each topic. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, tuple[Mapping[int, int], float]] = {}

    def put(self, topic: str, ends: Mapping[int, int]) -> None:
        """These are the ends now."""
        with self._lock:
            self._asked[topic] = (dict(ends), time.monotonic())

    def take(self) -> list[AskedEnds]:
        """What has been put since the last time."""
        with self._lock:
            asked, self._asked = self._asked, {}
        now = time.monotonic()
        return [AskedEnds(topic, ends, now - at) for topic, (ends, at) in asked.items()]
