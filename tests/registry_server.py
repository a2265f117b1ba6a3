"""A small HTTP server that keeps to Confluent's interface of a schema registry, for what a real one here cannot show.

That is faults, logins and GUIDs. It answers as the specification of that interface says: ``GET /schemas/ids/{id}``,
``/schemas/guids/{guid}``, ``/subjects/{subject}/versions/{version}`` and ``/subjects``, errors as ``error_code``.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

NOT_FOUND = b'{"error_code": 40403, "message": "Schema not found"}'


@dataclass(slots=True)
class RegistryServer:
    """What it knows, by path; what it does instead of answering; what it was asked."""

    url: str = ""
    known: dict[str, dict[str, object]] = field(default_factory=dict)
    status: int | None = None
    body: bytes | None = None
    authorization: str | None = None
    is_silent: bool = False
    asked: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def knows(self, path: str, schema: str, kind: str = "AVRO", references: Sequence[object] = ()) -> None:
        """Give a schema out at a path. As a registry does, the kind is left out for Avro."""
        reply: dict[str, object] = {"schema": schema, "references": list(references)}
        self.known[path] = reply if kind == "AVRO" else {**reply, "schemaType": kind}

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        """Status and body for what is asked."""
        self.asked.append(path)
        if self.is_silent:
            self.ended.wait()
        if self.authorization is not None and authorization != self.authorization:
            return 401, b'{"error_code": 401, "message": "Unauthorized"}'
        if self.status is not None or self.body is not None:
            return self.status or 200, self.body or b""
        if path == "/subjects":
            return 200, b"[]"
        found = self.known.get(path)
        return (404, NOT_FOUND) if found is None else (200, json.dumps(found).encode())


@contextmanager
def registry_server(certificate: Path | None = None) -> Iterator[RegistryServer]:
    """Run one; over TLS as ``localhost`` with a certificate whose key lies beside it."""
    state = RegistryServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            status, body = state.answer(path, self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme, host = "http", "127.0.0.1"
    if certificate is not None:
        scheme, host = "https", "localhost"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_name(f"{certificate.stem}-key.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    state.url = f"{scheme}://{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
