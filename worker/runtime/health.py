"""What a running worker says over HTTP: whether it lives, whether it is ready, and its metrics."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from socketserver import TCPServer
from typing import Any

import orjson
import structlog

from worker.errors import SettingsError
from worker.runtime.metrics import Metrics
from worker.runtime.watchdog import Liveness

JSON = "application/json"
MAX_HEAD_BYTES = 16 * 1024
MAX_CONNECTIONS = 32
MAX_PROBLEM_CHARS = 300
# For the whole of a request's head, and again for the answer.
CLIENT_TIMEOUT_S = 5.0
STOP_LOOK_S = 0.1

log = structlog.get_logger(__name__)


class Readiness:
    """Whether each part of the worker can do its work now. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, str | None] = {}

    def set(self, part: str, problem: str | None) -> None:
        """The part is in order (None) or has this problem, which never holds text of a message."""
        line = None if problem is None else " ".join(problem.split())[:MAX_PROBLEM_CHARS]
        with self._lock:
            self._parts[part] = line

    def parts(self) -> dict[str, str | None]:
        """The problem of each part that is known, None where it is in order."""
        with self._lock:
            return dict(self._parts)


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON


@contextmanager
def serve_health(host: str, port: int, *, liveness: Liveness, readiness: Readiness, metrics: Metrics) -> Iterator[int]:
    """Answer on ``/healthz``, ``/readyz`` and ``/metrics`` until the context is left; gives the port, which 0 picks.

    Raises SettingsError if it cannot listen there.
    """
    pages = {
        "/healthz": partial(health_page, liveness),
        "/readyz": partial(ready_page, readiness),
        "/metrics": partial(metrics_page, metrics),
    }
    with _open(host, port, pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(STOP_LOOK_S,), name="http", daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def health_page(liveness: Liveness) -> Page:
    """200 while every component gives a sign of life in time; else 503 with the seconds of silence of the others."""
    silent = liveness.silent()
    if not silent:
        return _json(HTTPStatus.OK, {"status": "ok"})
    seconds = {name: round(silence, 1) for name, silence in silent}
    return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "silent", "silent_s": seconds})


def ready_page(readiness: Readiness) -> Page:
    """200 if a part is known and none has a problem; else 503. Names the parts and their problems."""
    parts = readiness.parts()
    problems = {part: problem for part, problem in parts.items() if problem is not None}
    ready = bool(parts) and not problems
    answer = {"status": "ready" if ready else "not_ready", "parts": sorted(parts), "problems": problems}
    return _json(HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, answer)


def metrics_page(metrics: Metrics) -> Page:
    """The exposition for Prometheus."""
    return Page(HTTPStatus.OK, *metrics.render())


def _json(status: HTTPStatus, value: Mapping[str, object]) -> Page:
    return Page(status, orjson.dumps(value))


def _open(host: str, port: int, pages: Mapping[str, Callable[[], Page]]) -> _Server:
    try:
        return _Server(host, port, pages)
    except OSError as error:
        raise SettingsError(f"GASP_HTTP_PORT: cannot listen on {host}, port {port}: {error.strerror}") from error


class _Server(ThreadingHTTPServer):
    """A thread for each connection, up to a limit. Beyond it the one that has kept us waiting the longest is ended.

    So a client that holds connections open keeps no probe out: that sends its request at once.
    """

    daemon_threads = True
    request_queue_size = 2 * MAX_CONNECTIONS

    def __init__(self, host: str, port: int, pages: Mapping[str, Callable[[], Page]]) -> None:
        self.pages = pages
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._lock = threading.Lock()
        # In the order in which they came, and whether their request is there.
        self._connections: dict[socket.socket, bool] = {}
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own also asks the resolver for our name, which can take long and which nobody needs.
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as typeshed has it
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                self._end_longest()
            self._connections[request] = False
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as above
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections.pop(request, None)

    def heard(self, request: socket.socket) -> None:
        """The request of a connection is there."""
        with self._lock:
            if request in self._connections:
                self._connections[request] = True

    def _end_longest(self) -> None:
        """Its thread finds the end of what it reads or writes."""
        waiting = (one for one, is_heard in self._connections.items() if not is_heard)
        longest = next(waiting, next(iter(self._connections)))
        del self._connections[longest]
        with suppress(OSError):
            longest.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - as above
        error = sys.exc_info()[1]
        # A client that is slow or gone is nothing to report.
        if not isinstance(error, OSError):
            log.error("http_request_failed", error=type(error).__name__)


class _Handler(BaseHTTPRequestHandler):
    """One request a connection. The head is read as a whole first, so that its size and its time have a limit."""

    server: _Server
    # A request that cannot be read is answered with a head, too.
    default_request_version = "HTTP/1.0"

    def setup(self) -> None:
        super().setup()
        head = self._read_head()
        self.server.heard(self.connection)
        self.connection.settimeout(CLIENT_TIMEOUT_S)
        self.rfile.close()
        if len(head) > MAX_HEAD_BYTES:
            self.wfile.write(b"HTTP/1.0 431 Request Header Fields Too Large\r\n\r\n")
            head = b""
        self.rfile = BytesIO(head)

    def _read_head(self) -> bytes:
        """What came up to the blank line or the size limit; raises TimeoutError if that takes too long."""
        deadline = time.monotonic() + CLIENT_TIMEOUT_S
        head = b""
        while b"\r\n\r\n" not in head and len(head) <= MAX_HEAD_BYTES:
            self.connection.settimeout(max(deadline - time.monotonic(), 0.001))
            part = self.connection.recv(4096)
            if not part:
                return b""
            head += part
        return head

    def do_GET(self) -> None:
        make_page = self.server.pages.get(self.path.partition("?")[0])
        self._answer(_error_page(HTTPStatus.NOT_FOUND) if make_page is None else make_page())

    do_HEAD = do_GET  # noqa: N815 - the name that the base class looks for

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        # The base class says 501 to a method that it finds no do_ for, and would quote the request.
        known = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._answer(_error_page(known))

    def _answer(self, page: Page) -> None:
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    def version_string(self) -> str:
        return "gasp-worker"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: probes come every few seconds."""


def _error_page(status: HTTPStatus) -> Page:
    return _json(status, {"status": status.phrase})
