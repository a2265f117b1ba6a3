"""The relays that a worker runs: one for each channel that is set, in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from worker.review.relay import Relay
from worker.review.topic import TopicRelay
from worker.review.webhook import WebhookRelay
from worker.runtime.background import Background
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.channels import KAFKA, WEBHOOK
from worker.settings.settings import Settings
from worker.store.leases import Leases
from worker.store.outbox import Outbox

RELAYS: dict[str, type[TopicRelay] | type[WebhookRelay]] = {KAFKA: TopicRelay, WEBHOOK: WebhookRelay}


@contextmanager
def relaying(
    settings: Settings, outbox: Outbox, leases: Leases, owner: str, stop: Stop, telemetry: Telemetry
) -> Iterator[None]:
    """Tell what waits in the outbox until the context is left. A fault of a relay asks for the stop and is raised."""
    with ExitStack() as stack:
        for channel in settings.review_channels:
            relay: Relay = RELAYS[channel](settings, outbox, leases, owner, stop, telemetry)
            stack.enter_context(Background(f"review_{channel}", relay.run, stop))
        yield
