"""Requests to addresses of the operator's: who asks, for how long, and whether another try may have another answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import version

import httpx2

from worker.runtime.retry import pause_s

# Twelve attempts take about four hours.
FIRST_PAUSE_S = 15.0
LONGEST_PAUSE_S = 3600.0

_HEALS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


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
        """Whether what was posted arrived."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def may_heal(self) -> bool:
        """Whether the same post may succeed later."""
        return self.status is None or may_heal(self.status)


def user_agent() -> str:
    """Who asks."""
    return f"gasp-audit/{version('gasp-audit')}"


def may_heal(status: int) -> bool:
    """Whether the same request may have another status later."""
    return status in _HEALS or status >= 500


async def post(
    client: httpx2.AsyncClient, url: str, body: bytes, headers: Mapping[str, str], *, within_s: float
) -> Reply:
    """Post, with ``within_s`` seconds for all of it. Of the answer nothing but status and headers is read."""
    try:
        async with (
            asyncio.timeout(within_s),
            client.stream("POST", url, content=body, headers=dict(headers)) as response,
        ):
            return Reply(response.status_code, after_s=retry_after_s(response.headers.get("Retry-After", "")))
    except (httpx2.HTTPError, TimeoutError) as error:
        # The error's own words may hold the address, and with it a token.
        return Reply(fault=type(error).__name__)


async def limited(response: httpx2.Response, most_bytes: int) -> bytes | None:
    """The body, or None if it is larger."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most_bytes:
            return None
    return bytes(body)


def retry_pause_s(attempts: int, reply: Reply) -> float:
    """Seconds until the next attempt after so many.

    Never sooner than by our own pauses: else twelve attempts are over before the receiver is back.
    """
    own = pause_s(attempts - 1, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
    return min(max(own, reply.after_s or 0.0), LONGEST_PAUSE_S)


def retry_after_s(value: str) -> float | None:
    """What the header ``Retry-After`` asks for, in seconds from now; None if it asks for nothing that makes sense."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds()) if until.tzinfo else None
