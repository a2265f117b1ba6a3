"""Documents behind an address: one GET each, as text or as JSON in any shape in which documents are logged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote

import httpx2

from schemas.errors import UnusablePayload
from schemas.payload import parse_json
from schemas.traces.documents import read_document
from worker.errors import DocumentsUnavailable, SettingsError
from worker.runtime.web import limited, may_heal, user_agent
from worker.settings.documents import ID

REQUEST_TIMEOUT_S = 10.0
MAX_DOCUMENT_BYTES = 1024 * 1024
REQUESTS_AT_ONCE = 8

_THERE_IS_NONE = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}


class HttpDocuments:
    """Fetches documents from ``url``, in which ``{id}`` stands for an id; ``token`` is a bearer token."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        headers = {"User-Agent": user_agent(), "Accept": "application/json, text/plain"}
        self._headers = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        self._loop = asyncio.Runner()
        # What stays on this machine is not for a proxy.
        self._client = httpx2.AsyncClient(timeout=REQUEST_TIMEOUT_S, trust_env=url.startswith("https:"))

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The texts of those that there are.

        Raises DocumentsUnavailable for what may pass, SettingsError for an answer that asks for other settings.
        """
        return self._loop.run(self._fetch(ids))

    async def _fetch(self, ids: Sequence[str]) -> dict[str, str]:
        gate = asyncio.Semaphore(REQUESTS_AT_ONCE)
        found = await asyncio.gather(*(self._get(one, gate) for one in ids))
        return {one: text for one, text in zip(ids, found, strict=True) if text is not None}

    async def _get(self, identifier: str, gate: asyncio.Semaphore) -> str | None:
        # Quoted whole, so that no id can lead elsewhere on the server.
        address = self._url.replace(ID, quote(identifier, safe=""))
        try:
            async with (
                gate,
                asyncio.timeout(REQUEST_TIMEOUT_S),
                self._client.stream("GET", address, headers=self._headers) as response,
            ):
                _require_usable(response.status_code)
                if response.status_code in _THERE_IS_NONE:
                    return None
                return _text(await limited(response, MAX_DOCUMENT_BYTES), response.headers.get("Content-Type", ""))
        except (httpx2.HTTPError, TimeoutError) as error:
            # The error's own words may hold the address, and with it an id or a token.
            raise DocumentsUnavailable(
                f"no answer ({type(error).__name__}); look at the server in GASP_DOCUMENTS_URL"
            ) from None


def _require_usable(status: int) -> None:
    if 200 <= status < 300 or status in _THERE_IS_NONE:
        return
    if may_heal(status):
        raise DocumentsUnavailable(f"status {status}; look at the server in GASP_DOCUMENTS_URL")
    raise SettingsError(f"GASP_DOCUMENTS_URL: the server answers with status {status}; look at it and the token")


def _text(body: bytes | None, content_type: str) -> str | None:
    if body is None:
        return None
    if "json" not in content_type.lower():
        return body.decode(errors="replace").replace("\x00", "\ufffd")
    try:
        document = read_document(parse_json(body).value)
    except UnusablePayload:
        return None
    return None if document is None else document.text
