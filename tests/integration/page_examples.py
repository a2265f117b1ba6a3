"""The review page as a server on a free port, and tasks with texts that read like texts."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2
import uvicorn

from schemas.interaction import Passage
from tests.integration.store_examples import advance, grounding, prepared, scored, scores_of, selected
from worker.page.accounts import Accounts, account_line, read_accounts
from worker.page.application import review_application
from worker.page.reviewer import Identity, Role
from worker.page.serve import parts_of_store
from worker.rules.verdict import judge
from worker.settings.page import PageChoice
from worker.store.store import Store

SECRET = "a secret of thirty-two characters"
PASSWORD = "a password for tests"
TOKEN = re.compile(r'name="token" value="([^"]+)"')
PASSAGES = (
    "The museum opens at 10:00 and closes at 18:00. On Mondays it stays closed.",
    "A ticket costs 12 euros; children under six enter free.",
    "Guided tours in English start at noon and take about 90 minutes.",
    "The garden behind the museum is open to everybody.",
)


def ask(
    store: Store,
    answers: Sequence[str],
    *,
    passages: Sequence[str] = PASSAGES,
    question: str = "When can I visit?",
    reviewers: int = 1,
) -> None:
    """Store answers that are one sentence each, with a task on it."""
    scorer_id, threshold = prepared(store)
    batch = []
    for number, answer in enumerate(answers):
        plain = scored(number, f"id-{number}", [0.05], threshold)
        assert plain.decoded is not None
        read = tuple(Passage(id=f"doc-{place}", text=text) for place, text in enumerate(passages))
        logged = plain.decoded.interaction.model_copy(
            update={"question": question, "passages": read, "answer": f"You are welcome. {answer} Enjoy your visit!"}
        )
        found = grounding([0.05])
        spans = replace(found.sentences[0].sentence, start=17, end=17 + len(answer))
        found = replace(found, sentences=(replace(found.sentences[0], sentence=spans),))
        settlement = replace(
            plain,
            decoded=replace(plain.decoded, interaction=logged),
            grounding=found,
            verdict=judge(scores_of(found), threshold),
        )
        batch.append(selected(settlement, reviewers=reviewers))
    store.settlements.settle(scorer_id, batch, [advance(0, len(batch))])


def accounts(folder: Path, *names: str) -> Accounts:
    """Logins with one password."""
    path = folder / "accounts"
    lines = [account_line(name, Role.REVIEWER, PASSWORD) for name in names]
    path.write_text("# for tests\n" + "\n".join(lines) + "\n", "utf-8")
    return read_accounts(path)


@dataclass(frozen=True, slots=True)
class Site:
    """Where the page is."""

    url: str

    def client(self, **options: object) -> httpx2.Client:
        """A browser without its screen."""
        return httpx2.Client(base_url=self.url, follow_redirects=True, **options)  # type: ignore[arg-type]


@contextmanager
def served(store: Store, identity: Identity, *, is_secure: bool = False, **chosen: object) -> Iterator[Site]:
    """The application in a thread of its own, over real connections."""
    settings = PageChoice.model_validate(chosen)
    parts = parts_of_store(store, identity, settings)
    application = review_application(parts, secret=SECRET, is_secure=is_secure, session_s=3600)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, proxy_headers=False, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()


def log_in(client: httpx2.Client, name: str, password: str = PASSWORD) -> httpx2.Response:
    """Fill in the form of the login."""
    form = client.get("/login")
    return client.post("/login", data={"token": token_of(form), "name": name, "password": password})


def token_of(page: httpx2.Response) -> str:
    found = TOKEN.search(page.text)
    assert found, page.text
    return found[1]


def say(client: httpx2.Client, page: httpx2.Response, label: str, **fields: str) -> httpx2.Response:
    """Submit a label on the screen that is open; gives the next screen."""
    return client.post(page.url.path, data={"token": token_of(page), "label": label, **fields})
