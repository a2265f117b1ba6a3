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
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import ClassVar

import httpx2
import structlog
from pydantic import SecretStr

from worker.review.relay import Relay, RelayPolicy, TaskMessage
from worker.runtime.retry import pause_s
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.settings.channels import WEBHOOK
from worker.settings.settings import Settings
from worker.store.leases import Leases
from worker.store.outbox import Outbox

SIGNATURE_HEADER = "Gasp-Signature"
EVENT_ID_HEADER = "Gasp-Event-Id"

# For all of it: the name, the connection, the body out, the status in. Short enough for a stop to wait for it.
REQUEST_TIMEOUT_S = 10.0
# Twelve attempts take about four hours.
FIRST_PAUSE_S = 15.0
LONGEST_PAUSE_S = 3600.0

_HEALS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a post: a status, or the name of the fault. ``after_s`` is how long the server asks us to wait."""

    status: int | None = None
    fault: str = ""
    after_s: float | None = None

    @property
    def reason(self) -> str:
        """In words that are fit for a log."""
        return self.fault if self.status is None else f"status {self.status}"

    @property
    def is_taken(self) -> bool:
        """Whether the event arrived."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_heal(self) -> bool:
        """Whether the same post may succeed later."""
        return self.status is None or self.status in _HEALS or self.status >= 500


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
            "User-Agent": f"gasp-audit/{version('gasp-audit')}",
            EVENT_ID_HEADER: str(message.event.event_id),
            SIGNATURE_HEADER: signature(self._secret, int(time.time()), message.body),
        }
        try:
            async with (
                asyncio.timeout(REQUEST_TIMEOUT_S),
                self._client.stream("POST", self._url, content=message.body, headers=headers) as response,
            ):
                return Reply(response.status_code, after_s=retry_after_s(response.headers.get("Retry-After", "")))
        except (httpx2.HTTPError, TimeoutError) as error:
            # The error's own words may hold the address, and with it a token.
            return Reply(fault=type(error).__name__)

    def _act_on(self, message: TaskMessage, reply: Reply) -> None:
        event = message.event
        if reply.is_taken:
            self._finish([message])
        elif not reply.may_heal or event.attempts >= self.max_attempts:
            self._fail(event, reply.reason)
        else:
            # Never sooner than by our own pauses: else twelve attempts are over before the receiver is back.
            pause = min(max(_pause_s(event.attempts), reply.after_s or 0.0), LONGEST_PAUSE_S)
            self._leases.retry(event, reply.reason, pause)
            log.warning("webhook_retried", **self._facts(event), attempts=event.attempts, reason=reply.reason)


def signature(secret: bytes, sent_at_s: int, body: bytes) -> str:
    """The value of the header ``Gasp-Signature``; the time is in seconds since 1970."""
    mac = hmac.new(secret, b"%d." % sent_at_s + body, hashlib.sha256)
    return f"t={sent_at_s},v1={mac.hexdigest()}"


def retry_after_s(value: str) -> float | None:
    """What the header ``Retry-After`` asks for, in seconds from now; None if it asks for nothing that makes sense."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds()) if until.tzinfo else None


def _pause_s(attempts: int) -> float:
    return pause_s(attempts - 1, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)


def _required(secret: SecretStr | None) -> str:
    if secret is None:
        raise ValueError("no webhook is set")
    return secret.get_secret_value()
