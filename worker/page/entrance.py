"""In and out: the login of the page's own."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from worker.page.accounts import Accounts
from worker.page.parts import pages_of, parts_of, see


def show_login(request: Request) -> Response:
    """The form of the login."""
    _accounts(request)
    return pages_of(request).answer(request, "login.html", None, problem="")


def log_in(request: Request, form: Mapping[str, str]) -> Response:
    """Begin a session anew, with new tokens, if name and password are those of an account."""
    account = _accounts(request).admitted(form.get("name", "").strip(), form.get("password", ""))
    if account is None:
        problem = "Name or password is wrong."
        return pages_of(request).answer(request, "login.html", None, status=403, problem=problem)
    request.session.clear()
    request.session.update({"account": account.reviewer.name, "mark": account.mark})
    return see("/next")


def log_out(request: Request, form: Mapping[str, str]) -> Response:  # noqa: ARG001 - the form has nothing but its token
    """End the session."""
    request.session.clear()
    return see("/login")


def _accounts(request: Request) -> Accounts:
    identity = parts_of(request).identity
    if not isinstance(identity, Accounts):
        raise HTTPException(404)
    return identity
