"""The exporter: takes results out of their queue and brings them to one system, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx2
import structlog
from pydantic import SecretStr

from worker.export.langfuse import LangfuseExport
from worker.export.langsmith import LangSmithExport
from worker.export.mlflow import MlflowExport
from worker.export.otlp import OtlpExport
from worker.export.post import Destination, Lookup, Post
from worker.rules.exports import AnswerResults
from worker.runtime.background import Background
from worker.runtime.metrics import OutboxOutcome
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.runtime.web import Reply, post, retry_pause_s, user_agent
from worker.settings.exports import LANGFUSE, LANGSMITH, MLFLOW
from worker.settings.settings import Settings
from worker.store.exports import ExportJob, Exports
from worker.store.leases import Leases

BATCH_ANSWERS = 20
IDLE_LOOK_S = 1.0
# For one request: the name, the connection, the body out, the status in.
REQUEST_TIMEOUT_S = 10.0
# Longer than the requests of a batch take when none of them fails.
LEASE_S = 300.0
# Twelve attempts take about four hours.
MAX_ATTEMPTS = 12
MAX_LOOKUP_BYTES = 16 * 1024 * 1024
REMOVED = "the answer was removed by retention, or has no scored sentence"

log = structlog.get_logger(__name__)


class Exporter:
    """Brings the results of each answer to the ``name``d destination: at least once, with the same ids every time.

    What the system does not take is tried again with growing pauses, or after what ``Retry-After`` asks for; a refusal
    that would stay one, and the twelfth attempt, are a dead end: the row stays as failed, with the status.
    """

    def __init__(
        self,
        name: str,
        destination: Destination,
        *,
        exports: Exports,
        leases: Leases,
        owner: str,
        stop: Stop,
        telemetry: Telemetry,
        within_s: float,
    ) -> None:
        self._name = name
        self._destination = destination
        self._exports = exports
        self._leases = leases
        self._owner = owner
        self._stop = stop
        self._telemetry = telemetry
        self._part = f"export_{name}"
        self._retry = RetryPolicy(stop, telemetry, part=self._part, within_s=within_s)
        self._loop = asyncio.Runner()
        self._agent = {"User-Agent": user_agent()}
        # What stays on this machine is not for a proxy.
        self._remote, self._here = (
            httpx2.AsyncClient(timeout=REQUEST_TIMEOUT_S, trust_env=trust_env) for trust_env in (True, False)
        )

    def run(self) -> None:
        """Send what waits until a stop is asked for. Raises faults that do not pass, and Stopped."""
        try:
            while not self._stop.is_set():
                if not self._retry.call(self.run_once, name=self._part):
                    self._stop.wait(IDLE_LOOK_S)
        finally:
            self._telemetry.liveness.excuse(self._part)
            self.close()

    def close(self) -> None:
        """Close the connections."""
        for client in (self._remote, self._here):
            self._loop.run(client.aclose())
        self._loop.close()

    def run_once(self) -> bool:
        """Claim answers and settle each; false if none is due. Raises StoreUnavailable."""
        jobs = self._exports.claim(
            self._name, owner=self._owner, limit=BATCH_ANSWERS, lease_s=LEASE_S, max_attempts=MAX_ATTEMPTS
        )
        for job in jobs:
            if self._stop.is_set():
                self._leases.release(job)
            else:
                self._retry.beat()
                self._settle(job)
        return bool(jobs)

    def _settle(self, job: ExportJob) -> None:
        if job.answer is None:
            self._fail(job, REMOVED)
            return
        taken = self._taken(job, job.answer)
        for one in self._destination.posts(job.answer):
            if one.ids <= taken:
                continue
            reply = self._loop.run(self._sent(one))
            if reply.is_taken or reply.status in one.taken_too:
                continue
            if reply.may_heal and job.attempts < MAX_ATTEMPTS:
                self._leases.retry(job, reply.reason, retry_pause_s(job.attempts, reply))
                log.warning("export_retried", destination=self._name, attempts=job.attempts, reason=reply.reason)
            else:
                self._fail(job, reply.reason)
            return
        self._exports.finish(job)
        self._telemetry.metrics.exported(self._name, OutboxOutcome.SENT)

    def _taken(self, job: ExportJob, answer: AnswerResults) -> frozenset[str]:
        """What an earlier attempt has brought there, as far as that can and has to be asked."""
        lookup = self._destination.lookup(answer) if job.attempts > 1 else None
        return frozenset() if lookup is None else self._loop.run(self._get(lookup))

    async def _get(self, lookup: Lookup) -> frozenset[str]:
        client = self._client(lookup.url)
        headers = {**self._agent, **lookup.headers}
        try:
            async with (
                asyncio.timeout(REQUEST_TIMEOUT_S),
                client.stream("GET", lookup.url, headers=headers) as response,
            ):
                # What is beyond is not looked at: the most that it costs is a repeat.
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_LOOKUP_BYTES:
                        break
                return lookup.read(bytes(body)) if response.is_success else frozenset()
        except (httpx2.HTTPError, TimeoutError):
            # Then the requests fail, too, or repeat what is there.
            return frozenset()

    async def _sent(self, one: Post) -> Reply:
        headers = {**self._agent, **one.headers}
        return await post(self._client(one.url), one.url, one.body, headers, within_s=REQUEST_TIMEOUT_S)

    def _client(self, url: str) -> httpx2.AsyncClient:
        return self._remote if url.startswith("https:") else self._here

    def _fail(self, job: ExportJob, reason: str) -> None:
        self._leases.fail(job, reason)
        self._telemetry.metrics.exported(self._name, OutboxOutcome.FAILED)
        log.error("export_failed", destination=self._name, attempts=job.attempts, reason=reason)


@contextmanager
def exporting(
    settings: Settings, exports: Exports, leases: Leases, owner: str, stop: Stop, telemetry: Telemetry
) -> Iterator[None]:
    """Send results until the context is left, a thread for each system that is set."""
    with ExitStack() as stack:
        for name in settings.export_destinations:
            exporter = Exporter(
                name,
                destination(settings, name),
                exports=exports,
                leases=leases,
                owner=owner,
                stop=stop,
                telemetry=telemetry,
                within_s=settings.work_timeout_s,
            )
            stack.enter_context(Background(f"export_{name}", exporter.run, stop))
        yield


def destination(settings: Settings, name: str) -> Destination:
    """The system of this name, as the settings have it."""
    url = _secret(getattr(settings, f"export_{name}_url"))
    if name == LANGFUSE:
        return LangfuseExport(
            url, settings.export_langfuse_public_key or "", _secret(settings.export_langfuse_secret_key)
        )
    if name == LANGSMITH:
        return LangSmithExport(url, _secret(settings.export_langsmith_api_key))
    if name == MLFLOW:
        return MlflowExport(url, _secret(settings.export_mlflow_token))
    return OtlpExport(url, _secret(settings.export_otlp_headers))


def _secret(secret: SecretStr | None) -> str:
    return "" if secret is None else secret.get_secret_value()
