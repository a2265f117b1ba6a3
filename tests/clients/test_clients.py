"""Real clients are run, and what they send or print is read as a worker would read it."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.programs.content import ANSWER, APP, PASSAGES, QUESTION
from tests.clients.service import service
from worker.inspection.inspection import Inspected, Inspection, ReadExchange
from worker.settings.reading import Reading
from worker.terminal.inputs import Message

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("GASP_CLIENTS", ROOT / ".cache" / "clients")) / "bin" / "python"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM_LIMIT_S = 120

pytestmark = pytest.mark.skipif(
    not PYTHON.is_file(), reason="the clients are not installed; make test-clients installs them"
)

IDS = tuple(name for name, *_ in PASSAGES)
SCORES = tuple(score for _, _, score, _ in PASSAGES)


@dataclass(frozen=True, slots=True)
class Client:
    """A program with its arguments, the format that it writes, and what it says of the exchange.

    None: the client does not log it.
    """

    program: str
    format: str
    arguments: tuple[str, ...] = ()
    app: str | None = None
    ids: tuple[str, ...] | None = IDS
    scores: tuple[float, ...] | None = SCORES


def otlp(program: str, *arguments: str, **facts: object) -> Client:
    return Client(program, "otlp", arguments, **{"app": APP, **facts})  # type: ignore[arg-type] # named above


SENDERS = [
    otlp("openinference_langchain", "retrieval_chain"),
    otlp("openinference_langchain", "retrieval_chain", "one by one"),
    otlp("openinference_langchain", "lcel"),
    otlp("openinference_langchain", "retrieval_qa"),
    otlp("openinference_llamaindex"),
    otlp("openinference_haystack", scores=None),
    otlp("langfuse_observations", "by_hand", app=None),
    otlp("langfuse_observations", "callback", app=None),
    otlp("traceloop_langchain"),
    Client("langsmith_langchain", "langsmith", app=APP),
    otlp("langsmith_langchain", "otel"),
]
PRINTERS = [
    Client("langchain_results", "langchain"),
    Client("llamaindex_response", "llamaindex"),
    Client("haystack_result", "haystack", scores=None),
    Client("mlflow_trace", "mlflow"),
    Client("ragas_rows", "ragas", scores=None),
]


def run(client: Client, url: str) -> str:
    """Run the program to its end; what it printed."""
    done = subprocess.run(
        [str(PYTHON), str(PROGRAMS / f"{client.program}.py"), url, *client.arguments],
        capture_output=True,
        text=True,
        timeout=PROGRAM_LIMIT_S,
        env={**os.environ, "PYTHONPATH": "", "HAYSTACK_TELEMETRY_ENABLED": "False", "RAGAS_DO_NOT_TRACK": "true"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def read(messages: Sequence[Message]) -> list[Inspected]:
    return list(Inspection(Reading()).read(messages))


def check(found: Inspected, client: Client) -> None:
    """What the client logged is what is read."""
    assert isinstance(found, ReadExchange), found
    logged = found.interaction
    assert found.is_complete
    assert (logged.question, logged.answer) == (QUESTION, ANSWER)
    texts = [text for _, text, *_ in PASSAGES]
    assert sorted(passage.text for passage in logged.passages) == sorted(texts)
    if client.ids is not None:
        assert {passage.id: passage.text for passage in logged.passages} == dict(zip(IDS, texts, strict=True))
    if client.scores is not None:
        assert [passage.score for passage in logged.passages] == list(client.scores)
    if client.app is not None:
        assert logged.app == client.app


def name(client: Client) -> str:
    return "-".join((client.program, *client.arguments))


@pytest.mark.parametrize("client", SENDERS, ids=name)
def test_what_a_client_sends_is_read_in_any_order(client: Client) -> None:
    with service() as server:
        run(client, server.url)
    assert server.messages
    for seed in range(4):
        messages = list(server.messages)
        random.Random(seed).shuffle(messages)
        (found,) = read(messages + messages[:2])
        check(found, client)


def test_langsmith_without_multipart_is_read() -> None:
    client = Client("langsmith_langchain", "langsmith", app=APP)
    with service(langsmith_multipart=False) as server:
        run(client, server.url)
    (found,) = read(server.messages)
    check(found, client)


@pytest.mark.parametrize("client", PRINTERS, ids=name)
def test_what_a_program_prints_is_read(client: Client) -> None:
    with service() as server:
        lines = run(client, server.url).splitlines()
    rows = [line for line in lines if line.startswith("{")]
    assert rows
    for number, line in enumerate(rows):
        (found,) = read([Message(f"line {number}", line.encode())])
        has_repr = "page_content='" in line
        check(found, Client(client.program, client.format, ids=None, scores=None) if has_repr else client)


def test_where_texts_are_only_in_the_prompt_they_are_read_from_it() -> None:
    with service() as server:
        run(otlp("genai_langchain"), server.url)
    (found,) = read(server.messages)
    assert isinstance(found, ReadExchange)
    logged = found.interaction
    assert (logged.question, logged.answer, logged.app) == (QUESTION, ANSWER, APP)
    (passage,) = logged.passages
    assert all(text in passage.text for _, text, *_ in PASSAGES)
    assert logged.metadata["evidence"] == "prompt"
