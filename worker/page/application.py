"""The application: addresses, who answers them, and what becomes of faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from worker.page.entrance import log_in, log_out, show_login
from worker.page.guard import SafeHeaders, read_form
from worker.page.interactions import show_interaction
from worker.page.lists import show_agreement, show_apps, show_disputes, show_own
from worker.page.parts import Parts, open_pages, pages_of, parts_of, see
from worker.page.reviewing import give_label, next_task, show_task, skip_task, undo, withdraw
from worker.store.errors import StoreError

COOKIE = "gasp_review"
_TITLES = {403: "Not allowed", 404: "Not found", 409: "Too late", 413: "Too large"}

log = structlog.get_logger(__name__)


def review_application(parts: Parts, *, secret: str, is_secure: bool, session_s: int) -> Starlette:
    """The page as an ASGI application.

    ``secret`` signs the session's cookie, which ends after ``session_s`` seconds without a visit; with ``is_secure``
    browsers send it over https alone.
    """
    sessions = Middleware(
        SessionMiddleware,
        secret_key=secret,
        session_cookie=COOKIE,
        max_age=session_s,
        # A link to a task, followed from elsewhere, must find the session. Forms have their token besides.
        same_site="lax",
        https_only=is_secure,
    )
    application = Starlette(
        routes=_routes(),
        middleware=[Middleware(SafeHeaders), sessions],
        exception_handlers={HTTPException: _refused, StoreError: _store_fault},
    )
    application.state.parts = parts
    application.state.pages = open_pages()
    return application


def _routes() -> list[Route | Mount]:
    task = "/tasks/{task:uuid}/{sentence:int}"
    return [
        Route("/", _home),
        Route("/healthz", _alive),
        Route("/login", show_login),
        Route("/login", _posted(log_in), methods=["POST"]),
        Route("/logout", _posted(log_out), methods=["POST"]),
        Route("/next", next_task),
        Route("/undo", _posted(undo), methods=["POST"]),
        Route("/apps", show_apps),
        Route("/own", show_own),
        Route("/disputes", show_disputes),
        Route("/agreement", show_agreement),
        Route("/interaction", show_interaction),
        Route(task, show_task),
        Route(task, _posted(give_label), methods=["POST"]),
        Route(f"{task}/skip", _posted(skip_task), methods=["POST"]),
        Route(f"{task}/withdraw", _posted(withdraw), methods=["POST"]),
        Mount("/static", StaticFiles(packages=[("worker.page", "static")])),
    ]


def _posted(answer: Callable[[Request, Mapping[str, str]], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Read and check the form before anything is done with it."""

    async def read_and_answer(request: Request) -> Response:
        return await run_in_threadpool(answer, request, await read_form(request))

    return read_and_answer


def _home(_: Request) -> Response:
    return see("/next")


def _alive(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _refused(request: Request, error: Exception) -> Response:
    """Lead to the login, or say what is wrong."""
    status, why = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    if status == 401:
        return see("/login")
    who = parts_of(request).identity.reviewer(request)
    return pages_of(request).answer(
        request, "message.html", who, status=status, title=_TITLES.get(status, "That did not work"), why=why
    )


def _store_fault(request: Request, error: Exception) -> Response:
    """The database is away, or refuses: what was chosen stays in the browser as a draft."""
    log.warning("review_page_store_fault", error=str(error))
    why = "The database cannot be reached at the moment. What you entered is kept on this device: load the page again."
    return pages_of(request).answer(request, "message.html", None, status=503, title="Not at the moment", why=why)
