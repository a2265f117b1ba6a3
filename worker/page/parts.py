"""What the page is made of, and how it answers: templates filled, with what each of them needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from worker.page.guard import form_token
from worker.page.guidelines import Guidelines
from worker.page.reviewer import Identity, Reviewer, Role
from worker.page.screen import DETAILS, LABELS
from worker.store.disputes import Disputes
from worker.store.labels import Labels
from worker.store.review_queue import ReviewQueue
from worker.store.review_tasks import ReviewTasks
from worker.store.stored_answers import StoredAnswers
from worker.store.votes import Votes

_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class Parts:
    """The repositories, who asks, and what they go by.

    A task is leased for ``lease_s`` seconds, and a skipped one is not offered again for ``skip_s``.
    """

    queue: ReviewQueue
    disputes: Disputes
    tasks: ReviewTasks
    labels: Labels
    answers: StoredAnswers
    votes: Votes
    identity: Identity
    guidelines: Guidelines
    lease_s: float
    skip_s: float


@dataclass(frozen=True, slots=True)
class Pages:
    """The templates. Every text in them is escaped, and a name that is missing is a fault."""

    environment: Environment

    def answer(
        self, request: Request, name: str, who: Reviewer | None, *, status: int = 200, **shown: object
    ) -> HTMLResponse:
        """A page of a template, with what all pages have."""
        common: Mapping[str, object] = {
            "who": who,
            "token": form_token(request),
            "has_login": parts_of(request).identity.has_login,
            "labels": LABELS,
            "details": DETAILS,
            "done": request.session.pop("done", ""),
        }
        template = self.environment.get_template(name)
        return HTMLResponse(template.render({**common, **shown}), status_code=status)


def open_pages() -> Pages:
    """Read the templates of this package."""
    loader = PackageLoader("worker.page")
    return Pages(
        Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    )


def parts_of(request: Request) -> Parts:
    """The parts that the application was made of."""
    parts: Parts = request.app.state.parts
    return parts


def pages_of(request: Request) -> Pages:
    """Its templates."""
    pages: Pages = request.app.state.pages
    return pages


def see(address: str) -> Response:
    """Lead on to another page, which is asked for anew: after a form, so that it is not sent twice."""
    return RedirectResponse(address, _SEE_OTHER)


def reviewer_of(request: Request) -> Reviewer:
    """Who asks. Raises HTTPException: 401 if there is a login, 403 if a proxy should have said it."""
    identity = parts_of(request).identity
    reviewer = identity.reviewer(request)
    if reviewer is None:
        raise HTTPException(401 if identity.has_login else 403, "Nobody has said who you are.")
    return reviewer


def lead_of(request: Request, why: str) -> Reviewer:
    """Who asks. Raises HTTPException 403, which says ``why``, unless they are a lead."""
    who = reviewer_of(request)
    if who.role is not Role.LEAD:
        raise HTTPException(403, f"This is for leads: {why}")
    return who
