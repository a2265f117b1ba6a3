"""One exchange as it is stored, with what the audit says of each sentence: what dashboards and tasks may link to."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from worker.page.parts import lead_of, pages_of, parts_of
from worker.store.stored_answers import StoredAnswer

_MOST_DIGITS = 9


def show_interaction(request: Request) -> Response:
    """For a lead: question, passages, and the answer with flagged sentences marked, by ``app`` and ``id``."""
    who = lead_of(request, "who has seen the scores does not judge for themselves.")
    found = _asked_for(request)
    if found is None:
        raise HTTPException(404, "There is no such answer, or it was deleted.")
    return pages_of(request).answer(request, "interaction.html", who, found=found)


def _asked_for(request: Request) -> StoredAnswer | None:
    app, named, revision = (request.query_params.get(name, "") for name in ("app", "id", "revision"))
    if "\0" in app + named or (revision and not (revision.isascii() and revision.isdecimal())):
        return None
    if len(revision) > _MOST_DIGITS:
        return None
    return parts_of(request).answers.named(app, named, int(revision) if revision else None)
