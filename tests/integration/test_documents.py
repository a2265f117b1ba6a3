"""Texts of passages from where an application keeps them: a PostgreSQL database, an address."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import unquote

import psycopg
import pytest

from worker.documents.documents import Lookup, opened_documents
from worker.documents.http import MAX_DOCUMENT_BYTES
from worker.errors import DocumentsUnavailable, SettingsError
from worker.settings.documents import DocumentStoreChoice
from worker.store.session import endless

QUERY = "SELECT id, text FROM chunks WHERE id = ANY(:ids)"


@contextmanager
def opened(**choice: str) -> Iterator[Lookup]:
    with opened_documents(DocumentStoreChoice.model_validate(choice), endless) as lookup:
        yield lookup


@pytest.fixture
def chunks(empty_database_url: str) -> str:
    url = empty_database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE chunks (id text PRIMARY KEY, text text)")
        connection.execute("INSERT INTO chunks VALUES ('kb-1', 'one'), ('kb''2', 'two'), ('kb-3', NULL)")
    return url


def test_a_database_gives_the_texts_of_the_ids_it_has(chunks: str) -> None:
    with opened(documents_url=chunks, documents_query=QUERY) as lookup:
        assert lookup(["kb-1", "kb'2", "kb-3", "'); DROP TABLE chunks; --"]) == {"kb-1": "one", "kb'2": "two"}
        assert lookup(["kb-1"]) == {"kb-1": "one"}


def test_a_query_can_only_read_and_its_ids_may_be_cast(chunks: str) -> None:
    query = "SELECT id, text FROM chunks WHERE id = ANY(CAST(:ids AS text[]))"
    with opened(documents_url=chunks, documents_query=query) as lookup:
        assert lookup(["kb-1"]) == {"kb-1": "one"}
    with (
        opened(
            documents_url=chunks, documents_query="DELETE FROM chunks WHERE id = ANY(:ids) RETURNING id, text"
        ) as lookup,
        pytest.raises((DocumentsUnavailable, SettingsError)),
    ):
        lookup(["kb-1"])
    with opened(documents_url=chunks, documents_query=QUERY) as lookup:
        assert lookup(["kb-1"]) == {"kb-1": "one"}


def test_a_wrong_query_is_for_a_person_and_names_the_setting(chunks: str) -> None:
    with (
        opened(documents_url=chunks, documents_query="SELECT id, text FROM nowhere WHERE id = ANY(:ids)") as lookup,
        pytest.raises(SettingsError, match="GASP_DOCUMENTS_QUERY"),
    ):
        lookup(["kb-1"])


def test_a_database_that_is_away_may_come_back(unused_port: int) -> None:
    url = f"postgresql://nobody@127.0.0.1:{unused_port}/none"
    with (
        opened(documents_url=url, documents_query=QUERY) as lookup,
        pytest.raises(DocumentsUnavailable, match="GASP_DOCUMENTS_URL"),
    ):
        lookup(["kb-1"])


@pytest.fixture
def unused_port() -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return int(server.server_address[1])


class Shelf(BaseHTTPRequestHandler):
    """Answers ``/docs/<id>`` with what ``answers`` has for it."""

    answers: ClassVar[dict[str, tuple[int, str, bytes]]] = {}
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        status, kind, body = self.answers.get(unquote(self.path.removeprefix("/docs/")), (404, "text/plain", b""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shelf() -> Iterator[Callable[..., str]]:
    """Sets the answers of a server; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    Shelf.answers, Shelf.asked = {}, []

    def answering(**answers: tuple[int, str, bytes]) -> str:
        Shelf.answers = answers
        return f"http://127.0.0.1:{server.server_address[1]}/docs/{{id}}"

    yield answering
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_gives_texts_and_documents_of_any_shape(shelf: Callable[..., str]) -> None:
    found = {"page_content": "one", "metadata": {"source": "a"}}
    address = shelf(
        **{
            "kb/1?x=#": (200, "application/json", json.dumps(found).encode()),
            "plain": (200, "text/plain; charset=utf-8", "zwei \u20ac".encode()),
            "broken": (200, "application/json", b"{"),
            "large": (200, "text/plain", b"x" * (MAX_DOCUMENT_BYTES + 1)),
        }
    )
    with opened(documents_url=address, documents_token="t0ken") as lookup:
        texts = lookup(["kb/1?x=#", "plain", "broken", "large", "../none"])
    assert texts == {"kb/1?x=#": "one", "plain": "zwei \u20ac"}
    assert {token for _, token in Shelf.asked} == {"Bearer t0ken"}
    assert all(path.startswith("/docs/") and path.count("/") == 2 for path, _ in Shelf.asked)


@pytest.mark.parametrize(
    ("status", "error"), [(503, DocumentsUnavailable), (429, DocumentsUnavailable), (401, SettingsError)]
)
def test_a_refusal_passes_or_is_for_a_person(shelf: Callable[..., str], status: int, error: type[Exception]) -> None:
    address = shelf(a=(status, "text/plain", b"secret"))
    with opened(documents_url=address) as lookup, pytest.raises(error, match="GASP_DOCUMENTS_URL") as caught:
        lookup(["a"])
    assert "secret" not in str(caught.value)


def test_a_server_that_is_away_may_come_back(unused_port: int) -> None:
    with (
        opened(documents_url=f"http://127.0.0.1:{unused_port}/{{id}}") as lookup,
        pytest.raises(DocumentsUnavailable, match="ConnectError"),
    ):
        lookup(["a"])


def test_without_a_store_nothing_is_found() -> None:
    with opened() as lookup:
        assert lookup(["a"]) == {}


@pytest.mark.parametrize(
    "choice",
    [
        {"documents_url": "https://host/docs"},
        {"documents_url": "http://host/{id}"},
        {"documents_url": "postgresql://db/x"},
        {"documents_url": "postgresql://db/x", "documents_query": "SELECT 1"},
        {"documents_url": "https://host/{id}", "documents_query": QUERY},
        {"documents_query": QUERY},
        {"documents_token": "t"},
        {"documents_url": "postgresql://db/x", "documents_query": QUERY, "documents_token": "t"},
    ],
)
def test_what_makes_no_sense_is_refused(choice: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must|needed|effect"):
        DocumentStoreChoice.model_validate(choice)
