"""Review tasks posted to a real server: signed, tried again while it may heal, and given up where it cannot."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog

from schemas.review_task import ReviewTask
from tests.integration.review_examples import (
    EVENTS,
    SECRET,
    issue_tasks,
    no_attribution,
    review_settings,
)
from tests.integration.store_examples import rows
from worker.review import webhook
from worker.review.webhook import WebhookRelay
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.store.store import Store

WAITS_S = "SELECT extract(epoch FROM run_after - now())::double precision AS s FROM outbox"
# How soon the receiver notices that it is to stop.
STOP_LOOK_S = 0.02


@dataclass
class Receiver:
    """A web server that answers posts with the statuses and headers that were set, the last again and again."""

    answers: list[tuple[int, dict[str, str]]]
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    def next_answer(self) -> tuple[int, dict[str, str]]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def receiving(*answers: tuple[int, dict[str, str]]) -> Iterator[Receiver]:
    receiver = Receiver(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            status, headers = receiver.next_answer()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/tasks?token=of-ours"
    thread = threading.Thread(target=server.serve_forever, args=(STOP_LOOK_S,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def one_task(store: Store, database_url: str) -> None:
    issue_tasks(store, 1, "webhook")
    no_attribution(database_url)


@contextmanager
def relay(store: Store, database_url: str, url: str) -> Iterator[WebhookRelay]:
    settings = review_settings(database_url, review_webhook_url=url, review_webhook_secret=SECRET)
    opened = WebhookRelay(settings, store.outbox, store.leases, "relay", Stop(), Telemetry())
    yield opened
    opened.close()


def due_now(database_url: str) -> None:
    rows(database_url, "UPDATE outbox SET run_after = now() WHERE state = 'waiting'")


@pytest.mark.usefixtures("one_task")
def test_a_task_is_posted_once_and_whoever_knows_the_secret_can_check_it(store: Store, database_url: str) -> None:
    with receiving((204, {})) as receiver, relay(store, database_url, receiver.url) as sender:
        before = time.time()
        assert sender.run_once()
        assert not sender.run_once()
    ((path, headers, body),) = receiver.posts
    (event,) = rows(database_url, EVENTS)
    seconds, mac = (part.split("=")[1] for part in headers["gasp-signature"].split(","))
    assert hmac.new(SECRET.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest() == mac
    assert before - 1 <= int(seconds) <= time.time()
    assert (path, headers["content-type"]) == ("/tasks?token=of-ours", "application/json")
    assert headers["gasp-event-id"] == event["event_id"] == str(ReviewTask.model_validate_json(body).event_id)
    assert event["state"] == "done"


@pytest.mark.usefixtures("one_task")
def test_what_may_heal_is_tried_again_with_the_same_event_when_the_server_asks_for_it(
    store: Store, database_url: str
) -> None:
    answers: list[tuple[int, dict[str, str]]] = [
        (503, {"Retry-After": "90"}),
        (429, {"Retry-After": "999999"}),
        (500, {}),
        (200, {}),
    ]
    waits = []
    with receiving(*answers) as receiver, relay(store, database_url, receiver.url) as sender:
        for _ in range(3):
            assert sender.run_once()
            assert not sender.run_once()
            waits.append(rows(database_url, WAITS_S)[0]["s"])
            due_now(database_url)
        assert sender.run_once()
    assert waits[0] == pytest.approx(90, abs=10)
    assert waits[1] == pytest.approx(3600, abs=10)
    assert 20 <= waits[2] <= 60
    assert len({(headers["gasp-event-id"], body) for _, headers, body in receiver.posts}) == 1
    (event,) = rows(database_url, EVENTS)
    assert (event["state"], event["attempts"], event["last_error"]) == ("done", 4, "status 500")


@pytest.mark.usefixtures("one_task")
@pytest.mark.parametrize("asked", ["0", "1", "Wed, 01 Jan 2020 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 +0000"])
def test_a_server_that_asks_for_no_pause_gets_ours_all_the_same(store: Store, database_url: str, asked: str) -> None:
    rows(database_url, "UPDATE outbox SET attempts = 3")
    with receiving((503, {"Retry-After": asked})) as receiver, relay(store, database_url, receiver.url) as sender:
        assert sender.run_once()
        assert not sender.run_once()
    # The fourth pause is of one to two minutes.
    assert rows(database_url, WAITS_S)[0]["s"] >= 45


@pytest.mark.usefixtures("one_task")
@pytest.mark.parametrize("answer", [(400, {}), (410, {}), (302, {"Location": "/elsewhere"})])
def test_a_refusal_and_a_redirect_are_dead_ends_that_are_logged_without_a_word_of_the_message(
    store: Store, database_url: str, answer: tuple[int, dict[str, str]]
) -> None:
    with (
        receiving(answer) as receiver,
        relay(store, database_url, receiver.url) as sender,
        structlog.testing.capture_logs() as logs,
    ):
        assert sender.run_once()
        assert not sender.run_once()
    assert [path for path, _, _ in receiver.posts] == ["/tasks?token=of-ours"]
    (event,) = rows(database_url, EVENTS)
    assert (event["state"], event["last_error"]) == ("failed", f"status {answer[0]}")
    (entry,) = logs
    assert (entry["event"], entry["event_id"], entry["reason"]) == (
        "review_task_not_told",
        event["event_id"],
        f"status {answer[0]}",
    )
    assert not {"train", "Zug", "token", SECRET} & set(str(logs).replace("=", " ").split())


@pytest.mark.usefixtures("one_task")
def test_the_twelfth_attempt_is_the_last(store: Store, database_url: str) -> None:
    with socket.socket() as taken:
        # Bound and not listening: connections are refused.
        taken.bind(("127.0.0.1", 0))
        with relay(store, database_url, f"http://127.0.0.1:{taken.getsockname()[1]}/") as sender:
            rows(database_url, "UPDATE outbox SET attempts = 10")
            states = []
            for _ in range(2):
                assert sender.run_once()
                states += [(event["state"], event["attempts"]) for event in rows(database_url, EVENTS)]
                due_now(database_url)
            assert not sender.run_once()
    assert states == [("waiting", 11), ("failed", 12)]
    assert rows(database_url, EVENTS)[0]["last_error"] == "ConnectError"


@pytest.mark.usefixtures("one_task")
def test_a_server_that_answers_drop_by_drop_is_given_up_in_time(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "REQUEST_TIMEOUT_S", 0.5)
    done = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            while not done.wait(0.05):
                connection.sendall(b"H")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        try:
            with relay(store, database_url, f"http://127.0.0.1:{server.getsockname()[1]}/") as sender:
                before = time.monotonic()
                assert sender.run_once()
                assert time.monotonic() - before < 10
        finally:
            done.set()
            thread.join(10)
    (event,) = rows(database_url, EVENTS)
    assert event["state"] == "waiting"
    assert event["last_error"] == "TimeoutError"
