"""Review tasks posted to a web address of the operator's, signed.

A receiver checks ``Gasp-Signature: t=<unix seconds>,v1=<hex>``: the hexadecimal HMAC-SHA256, under the shared secret,
of the seconds, a full stop and the body as it came. It should refuse old seconds and let an event id count once.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Sequence
from typing import ClassVar

import httpx2
import structlog
from pydantic import SecretStr

from worker.review.relay import Relay, RelayPolicy, TaskMessage
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.runtime.web import Reply, post, retry_pause_s, user_agent
from worker.settings.channels import WEBHOOK
from worker.settings.settings import Settings
from worker.store.leases import Leases
from worker.store.outbox import Outbox

SIGNATURE_HEADER = "Gasp-Signature"
EVENT_ID_HEADER = "Gasp-Event-Id"

# For all of it: the name, the connection, the body out, the status in. Short enough for a stop to wait for it.
REQUEST_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


class WebhookRelay(Relay):
    """Posts one event at a time; only a status of 200 to 299 settles it.

    No status, 408, 425, 429 and 500 or more are tried again, with growing pauses or after what ``Retry-After`` asks
    for. Any other status, a redirect too, and the twelfth attempt are a dead end: the event stays in the outbox as
    failed, with the reason. Of an answer nothing but status and headers is read.
    """

    channel: ClassVar[str] = WEBHOOK
    batch_events: ClassVar[int] = 1
    max_attempts: ClassVar[int] = 12

    def __init__(
        self, settings: Settings, outbox: Outbox, leases: Leases, owner: str, stop: Stop, telemetry: Telemetry
    ) -> None:
        super().__init__(
            outbox=outbox,
            leases=leases,
            policy=RelayPolicy(owner, settings.review_wait_s, settings.max_message_bytes),
            stop=stop,
            telemetry=telemetry,
            within_s=settings.work_timeout_s,
        )
        self._url = _required(settings.review_webhook_url)
        self._secret = _required(settings.review_webhook_secret).encode()
        self._loop = asyncio.Runner()
        # One bound for all of a request, below: of two that end together either may name the fault. What stays on this
        # machine is not for a proxy.
        self._client = httpx2.AsyncClient(timeout=None, trust_env=self._url.startswith("https:"))

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    def _send(self, messages: Sequence[TaskMessage]) -> None:
        for message in messages:
            self._act_on(message, self._loop.run(self._post(message)))

    async def _post(self, message: TaskMessage) -> Reply:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": user_agent(),
            EVENT_ID_HEADER: str(message.event.event_id),
            SIGNATURE_HEADER: signature(self._secret, int(time.time()), message.body),
        }
        return await post(self._client, self._url, message.body, headers, within_s=REQUEST_TIMEOUT_S)

    def _act_on(self, message: TaskMessage, reply: Reply) -> None:
        event = message.event
        if reply.is_taken:
            self._finish([message])
        elif not reply.may_heal or event.attempts >= self.max_attempts:
            self._fail(event, reply.reason)
        else:
            self._leases.retry(event, reply.reason, retry_pause_s(event.attempts, reply))
            log.warning("webhook_retried", **self._facts(event), attempts=event.attempts, reason=reply.reason)


def signature(secret: bytes, sent_at_s: int, body: bytes) -> str:
    """The value of the header ``Gasp-Signature``; the time is in seconds since 1970."""
    mac = hmac.new(secret, b"%d." % sent_at_s + body, hashlib.sha256)
    return f"t={sent_at_s},v1={mac.hexdigest()}"


def _required(secret: SecretStr | None) -> str:
    if secret is None:
        raise ValueError("no webhook is set")
    return secret.get_secret_value()
