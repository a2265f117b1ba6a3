"""A relay that ends as by kill -9 just before one of its steps. Arguments: database, broker, topic, step."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from worker.broker.sink import RecordSink
from worker.review.topic import TopicRelay
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.settings import read_settings
from worker.store.outbox import Outbox
from worker.store.store import open_store

STEPS: dict[str, type] = {"note_sending": Outbox, "send": RecordSink, "finish": Outbox}


def main(url: str, bootstrap: str, topic: str, step: str) -> None:
    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(STEPS[step], step, die)
    settings = read_settings(database_url=url, kafka_bootstrap_servers=bootstrap, review_tasks_topic=topic)
    with open_store(url, application_name="gasp-dying-relay") as store:
        TopicRelay(settings, store.outbox, store.leases, "dying", Stop(), Telemetry()).run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
