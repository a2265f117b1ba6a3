"""What keeps strangers out of the page: headers on every answer, bounded forms, and a token in each form."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hmac import compare_digest
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_FORM_BYTES = 64 * 1024
MAX_FIELDS = 20

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # The address of a task is no secret, but nobody else's business. "no-referrer" would hide a form's origin from us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Questions and answers are not to lie in a browser's cache.
    "Cache-Control": "no-store",
}


class SafeHeaders:
    """Puts the headers on every answer, also on those of faults."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, with the headers."""

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_safely)


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form that this page made. Raises HTTPException: 400, 403 without its token, 413 if too large."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413)
    try:
        form = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise HTTPException(400) from None
    known = request.session.get("token")
    if not isinstance(known, str) or not compare_digest(known.encode(), form.get("token", "").encode()):
        raise HTTPException(403, "The form is too old. Load the page again.")
    return form


def form_token(request: Request) -> str:
    """The token of this session's forms."""
    token: str = request.session.setdefault("token", secrets.token_urlsafe(24))
    return token
