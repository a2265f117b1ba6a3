"""The screens on which people label: the next task, one task, and what is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from worker.page.parts import Parts, pages_of, parts_of, reviewer_of, see
from worker.page.reviewer import Reviewer
from worker.page.saying import TOOL, label_of, store, withdrawal_of
from worker.page.screen import Screen, screen_of
from worker.store.review_queue import Asked, Said

MAX_APP_CHARS = 200


def next_task(request: Request) -> Response:
    """Lead to the next sentence that waits for the reviewer, of the app that they chose if they chose one."""
    who, parts = reviewer_of(request), parts_of(request)
    if "app" in request.query_params:
        request.session["app"] = request.query_params["app"].replace("\0", "")[:MAX_APP_CHARS]
    asked = parts.queue.take(who.name, parts.lease_s, request.session.get("app") or None)
    if asked is not None:
        return _to(asked)
    progress = parts.queue.progress(who.name, TOOL)
    return pages_of(request).answer(request, "empty.html", who, progress=progress, app=request.session.get("app", ""))


def show_task(request: Request) -> Response:
    """A sentence in its answer, beside the passages. What the audit said of it comes after the reviewer's own word."""
    who, parts = reviewer_of(request), parts_of(request)
    screen = _screen(request, parts)
    parts.queue.hold(who.name, screen.task.task_id, parts.lease_s)
    said = parts.queue.said_of(who.name, TOOL, screen.task.task_id)
    return pages_of(request).answer(
        request,
        "task.html",
        who,
        screen=screen,
        said=said.get(screen.sentence.index),
        place=screen.asked.index(screen.sentence.index) + 1,
        progress=parts.queue.progress(who.name, TOOL),
        guidelines=parts.guidelines.of(screen.task.app),
    )


def give_label(request: Request, form: Mapping[str, str]) -> Response:
    """Store what the form says, and lead to the next sentence."""
    who, parts = reviewer_of(request), parts_of(request)
    screen = _screen(request, parts)
    store(parts.labels, label_of(screen.task, screen.sentence.index, who, form))
    request.session["done"] = f"{screen.task.task_id}/{screen.sentence.index}"
    return see("/next")


def skip_task(request: Request, form: Mapping[str, str]) -> Response:  # noqa: ARG001 - the form has nothing but its token
    """Give the task back for a while, and lead to the next."""
    who, parts = reviewer_of(request), parts_of(request)
    parts.queue.skip(who.name, request.path_params["task"], parts.skip_s)
    return see("/next")


def undo(request: Request, form: Mapping[str, str]) -> Response:  # noqa: ARG001 - as above
    """Take the reviewer's last label back, and lead to its sentence."""
    who, parts = reviewer_of(request), parts_of(request)
    lately = parts.queue.said_lately(who.name, TOOL, 1)
    if not lately:
        return see("/next")
    _take_back(parts, who, lately[0])
    return _to(lately[0].asked)


def withdraw(request: Request, form: Mapping[str, str]) -> Response:  # noqa: ARG001 - as above
    """Take the reviewer's label of one sentence back, and lead to their list."""
    who, parts = reviewer_of(request), parts_of(request)
    said = parts.queue.said_of(who.name, TOOL, request.path_params["task"]).get(request.path_params["sentence"])
    if said is not None:
        _take_back(parts, who, said)
    return see("/own")


def _take_back(parts: Parts, who: Reviewer, said: Said) -> None:
    store(parts.labels, withdrawal_of(said, who))


def _screen(request: Request, parts: Parts) -> Screen:
    task_id: UUID = request.path_params["task"]
    task = parts.tasks.by_id(task_id)
    screen = None if task is None else screen_of(task, request.path_params["sentence"])
    if screen is None:
        raise HTTPException(404, "There is no such task, or its answer was deleted.")
    return screen


def _to(asked: Asked) -> Response:
    return see(f"/tasks/{asked.task_id}/{asked.sentence_index}")
