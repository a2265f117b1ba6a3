"""A server on loopback that keeps what clients post, and answers as the services do that they believe to talk to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.clients.programs.content import ANSWER
from worker.terminal.inputs import Message

KEPT_HEADERS = ("content-type", "content-encoding")
STOP_LOOK_S = 0.02
# What the LangSmith client asks a server before it posts.
LANGSMITH_INGEST = {
    "use_multipart_endpoint": True,
    "size_limit": 100,
    "size_limit_bytes": 20_971_520,
    "scale_up_nthreads_limit": 16,
    "scale_up_qsize_trigger": 1000,
    "scale_down_nempty_trigger": 4,
}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_780_000_000,
    "model": "gpt-4o-mini-2024-07-18",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
}


class Service(ThreadingHTTPServer):
    """``messages`` are the bodies of posts that are no questions to a model, in the order in which they came."""

    daemon_threads = True

    def __init__(self, *, langsmith_multipart: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[Message] = []
        self.langsmith_multipart = langsmith_multipart

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def info(self) -> dict[str, Any]:
        """What LangSmith says of itself."""
        ingest = {**LANGSMITH_INGEST, "use_multipart_endpoint": self.langsmith_multipart}
        return {"version": "0.13.0", "batch_ingest_config": ingest}


@contextmanager
def service(*, langsmith_multipart: bool = True) -> Iterator[Service]:
    """Serves until the context is left."""
    server = Service(langsmith_multipart=langsmith_multipart)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": STOP_LOOK_S})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self._body()
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            self._reply(COMPLETION)
        elif path == "/info":
            self._reply(self.server.info())
        else:
            if body and self.command in {"POST", "PATCH"}:
                told = {name.lower(): value.encode("latin-1") for name, value in self.headers.items()}
                headers = tuple((name, told[name]) for name in KEPT_HEADERS if name in told)
                self.server.messages.append(Message(f"{path}#{len(self.server.messages)}", body, headers))
            self._reply({})

    do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815 - as the base class looks for them

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
