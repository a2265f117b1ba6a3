"""The HTTP server of a worker, asked with real requests."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from tests.waiting import wait_until
from worker.errors import SettingsError
from worker.runtime import health
from worker.runtime.health import CLIENT_TIMEOUT_S, MAX_CONNECTIONS, MAX_HEAD_BYTES, Readiness, serve_health
from worker.runtime.metrics import Metrics
from worker.runtime.watchdog import Liveness

HOST = "127.0.0.1"
DEADLINE_S = 30.0
GOOD_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: worker\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> object:
        return json.loads(self.body)


@dataclass(slots=True)
class Service:
    """A server and the parts that it tells of."""

    liveness: Liveness = field(default_factory=Liveness)
    readiness: Readiness = field(default_factory=Readiness)
    metrics: Metrics = field(default_factory=Metrics)
    port: int = 0

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> Reply:
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=DEADLINE_S)) as connection:
            connection.request(method, path, body)
            reply = connection.getresponse()
            headers = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, headers, reply.read())

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=DEADLINE_S)


def received(connection: socket.socket) -> bytes:
    """Everything until the server closes; nothing if it closes hard."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        return b"".join(parts)
    return b"".join(parts)


def serve(service: Service) -> Iterator[Service]:
    with serve_health(
        HOST, 0, liveness=service.liveness, readiness=service.readiness, metrics=service.metrics
    ) as service.port:
        yield service


@pytest.fixture(autouse=True)
def soon_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test stops its server."""
    monkeypatch.setattr(health, "STOP_LOOK_S", 0.01)


@pytest.fixture
def service() -> Iterator[Service]:
    yield from serve(Service())


@pytest.fixture
def hasty_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """One that waits for its clients half a second only."""
    monkeypatch.setattr(health, "CLIENT_TIMEOUT_S", 0.5)
    yield from serve(Service())


def test_a_worker_whose_components_are_heard_of_is_healthy(service: Service) -> None:
    service.liveness.expect("poll", 600.0)
    reply = service.ask("/healthz")
    assert (reply.status, reply.value) == (200, {"status": "ok"})
    assert reply.headers["content-type"] == "application/json"


def test_a_silent_component_makes_it_unhealthy_until_it_beats(service: Service) -> None:
    service.liveness.expect("engine", 600.0)
    service.liveness.expect("poll", 0.2)
    wait_until(lambda: service.ask("/healthz").status == 503, what="silence", deadline_s=DEADLINE_S)
    reply = json.loads(service.ask("/healthz").body)
    assert reply["status"] == "silent"
    assert reply["silent_s"].keys() == {"poll"}
    assert reply["silent_s"]["poll"] >= 0.2
    service.liveness.excuse("poll")
    assert service.ask("/healthz").status == 200


def test_a_worker_of_which_no_part_is_known_is_not_ready(service: Service) -> None:
    reply = service.ask("/readyz")
    assert (reply.status, reply.value) == (503, {"status": "not_ready", "parts": [], "problems": {}})


def test_it_is_ready_while_no_part_has_a_problem(service: Service) -> None:
    service.readiness.set("model", None)
    service.readiness.set("database", "connection\n  refused")
    reply = service.ask("/readyz")
    problems = {"database": "connection refused"}
    assert (reply.status, reply.value) == (
        503,
        {"status": "not_ready", "parts": ["database", "model"], "problems": problems},
    )
    service.readiness.set("database", None)
    reply = service.ask("/readyz")
    assert (reply.status, reply.value) == (200, {"status": "ready", "parts": ["database", "model"], "problems": {}})


def test_a_problem_is_a_short_line(service: Service) -> None:
    service.readiness.set("broker", "away " * 1000)
    assert len(service.readiness.parts()["broker"] or "") == health.MAX_PROBLEM_CHARS


def test_the_metrics_are_those_of_the_worker(service: Service) -> None:
    service.metrics.lag("t", 3, 42)
    reply = service.ask("/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"] == service.metrics.render()[1]
    assert b'gasp_lag_messages{partition="3",topic="t"} 42.0\n' in reply.body


def test_a_query_does_not_change_the_page(service: Service) -> None:
    assert service.ask("/healthz?verbose=1").status == 200


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics/../etc/passwd", "//healthz/x", "/%2e", "/HEALTHZ"])
def test_there_are_no_other_pages(service: Service, path: str) -> None:
    assert service.ask(path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_not_allowed(service: Service, method: str) -> None:
    reply = service.ask("/healthz", method, b"body")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(("path", "status"), [("/healthz", 200), ("/readyz", 503), ("/metrics", 200), ("/no", 404)])
def test_head_has_the_headers_of_get_and_no_body(service: Service, path: str, status: int) -> None:
    with service.connect() as connection:
        connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: worker\r\n\r\n".encode())
        head, _, body = received(connection).partition(b"\r\n\r\n")
    assert f" {status} ".encode() in head.splitlines()[0]
    assert body == b""
    length = int(head.lower().split(b"content-length: ")[1].split()[0])
    # What the process itself has done since may have changed the digits of a figure or two.
    assert length == pytest.approx(len(service.ask(path).body), abs=50)


@pytest.mark.parametrize("path", ["/healthz", "/no"])
def test_the_server_does_not_tell_its_python(service: Service, path: str) -> None:
    assert service.ask(path).headers["server"] == "gasp-worker"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/9.9\r\n\r\n", b"505"),
        (b"GET /healthz HTTP/x.1\r\n\r\n", b"400"),
        (b"\xff\xfe\x00 \x00 HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /healthz HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", b"431"),
    ],
)
def test_a_request_that_is_none_is_refused_and_not_quoted(
    service: Service, request_bytes: bytes, status: bytes
) -> None:
    with service.connect() as connection:
        connection.sendall(request_bytes)
        answer = received(connection)
    assert answer.split()[1] == status
    assert b"nonsense" not in answer
    assert service.ask("/healthz").status == 200


def test_a_request_has_a_largest_size(service: Service) -> None:
    start = b"GET /healthz HTTP/1.1\r\nlong: "
    fits = start + b"x" * (MAX_HEAD_BYTES - len(start) - 4) + b"\r\n\r\n"
    for request_bytes, status in ((fits, b"200"), (start + b"x" * (MAX_HEAD_BYTES + 1 - len(start)), b"431")):
        with service.connect() as connection:
            connection.sendall(request_bytes)
            assert received(connection).split()[1] == status


def test_a_client_that_says_nothing_is_hung_up_on(hasty_service: Service) -> None:
    with hasty_service.connect() as connection:
        assert received(connection) == b""


def test_a_client_that_sends_byte_by_byte_is_hung_up_on_and_holds_up_nobody(
    hasty_service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    hung_up = threading.Event()

    def dribble() -> None:
        with hasty_service.connect() as connection:
            connection.settimeout(0.05)
            while not hung_up.is_set():
                try:
                    connection.sendall(b"x")
                    # Waits for the next byte's time, and notices the end.
                    if connection.recv(1) == b"":
                        hung_up.set()
                except TimeoutError:
                    continue
                except (BrokenPipeError, ConnectionResetError):
                    hung_up.set()

    thread = threading.Thread(target=dribble, daemon=True)
    thread.start()
    assert hasty_service.ask("/healthz").status == 200
    assert hung_up.wait(DEADLINE_S)
    thread.join()
    assert capfd.readouterr() == ("", "")


def test_a_client_that_leaves_is_nothing_to_report(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    for begun in (b"", b"GET /heal"):
        with service.connect() as connection:
            connection.sendall(begun)
    assert service.ask("/healthz").status == 200
    assert capfd.readouterr() == ("", "")


def test_many_clients_are_answered_at_once(service: Service) -> None:
    service.readiness.set("model", None)
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(service.ask, ["/healthz", "/readyz", "/metrics"] * 64))
    assert {reply.status for reply in replies} == {200}


def test_connections_that_say_nothing_keep_no_probe_out(service: Service) -> None:
    idle = [service.connect() for _ in range(3 * MAX_CONNECTIONS)]
    statuses = []
    for _ in range(35):
        statuses.append(service.ask("/healthz").status)
        idle.append(service.connect())
    for connection in idle:
        connection.close()
    assert statuses == [200] * 35


def test_beyond_the_limit_the_connection_that_waits_longest_is_ended_and_there_are_no_more_threads(
    service: Service,
) -> None:
    def threads() -> int:
        return sum("process_request_thread" in thread.name for thread in threading.enumerate())

    before = threads()
    waiting = [service.connect() for _ in range(MAX_CONNECTIONS)]
    wait_until(lambda: threads() == before + MAX_CONNECTIONS, what="the waiting clients", deadline_s=CLIENT_TIMEOUT_S)
    with service.connect() as one_more:
        one_more.sendall(GOOD_REQUEST)
        assert b" 200 " in received(one_more)
    assert received(waiting[0]) == b""
    wait_until(lambda: threads() < before + MAX_CONNECTIONS, what="its end", deadline_s=CLIENT_TIMEOUT_S)
    for connection in waiting:
        connection.close()
    wait_until(lambda: threads() == before, what="their end", deadline_s=DEADLINE_S)
    assert service.ask("/healthz").status == 200


def test_a_page_that_fails_is_logged_by_the_name_of_its_error_only(
    service: Service, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Metrics) -> tuple[bytes, str]:
        raise LookupError("something private")

    monkeypatch.setattr(Metrics, "render", fail)
    with pytest.raises(http.client.RemoteDisconnected):
        service.ask("/metrics")
    said = capfd.readouterr()
    assert "http_request_failed" in said.out + said.err
    assert "LookupError" in said.out + said.err
    assert "private" not in said.out + said.err


def test_a_port_that_is_taken_stops_the_start_and_names_the_setting(service: Service) -> None:
    parts = Service()
    with (
        pytest.raises(SettingsError, match=f"^GASP_HTTP_PORT: cannot listen on {HOST}, port {service.port}: "),
        serve_health(HOST, service.port, liveness=parts.liveness, readiness=parts.readiness, metrics=parts.metrics),
    ):
        pass


def test_the_port_is_free_again_once_the_context_is_left() -> None:
    parts = Service()
    for served in serve(parts):
        assert served.ask("/healthz").status == 200
    with pytest.raises(ConnectionRefusedError):
        parts.connect()
    with serve_health(
        HOST, parts.port, liveness=parts.liveness, readiness=parts.readiness, metrics=parts.metrics
    ) as port:
        assert port == parts.port
        assert parts.ask("/healthz").status == 200
