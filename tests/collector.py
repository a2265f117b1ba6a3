"""What takes results back: an address of OTLP/HTTP for logs, as a collector has one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

STOP_LOOK_S = 0.02


@contextmanager
def collector() -> Iterator[tuple[str, list[LogRecord]]]:
    """An address that takes OTLP, and the records that came there."""
    records: list[LogRecord] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = ExportLogsServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
            records.extend(
                record
                for resource in request.resource_logs
                for scope in resource.scope_logs
                for record in scope.log_records
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(STOP_LOOK_S,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/logs", records
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
