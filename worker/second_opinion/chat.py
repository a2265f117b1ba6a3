"""Second opinions of an OpenAI-compatible chat endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from worker.rules.opinion import Opinion, OpinionFailed, OpinionLabel
from worker.runtime.web import user_agent
from worker.second_opinion.prompt import INSTRUCTIONS, PROMPT, data_message
from worker.settings.settings import Settings

MAX_REPLY_BYTES = 256 * 1024
MAX_REPLY_TOKENS = 200


class Judgement(BaseModel):
    """What the model has to answer, and nothing beside it. ``probability`` is that of not being fully supported."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    verdict: OpinionLabel
    probability: float = Field(ge=0, le=1, allow_inf_nan=False, strict=True)


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    """Of a reply what we read."""

    model_config = ConfigDict(hide_input_in_errors=True)

    choices: list[_Choice] = Field(min_length=1)


# Kept by endpoints that can hold a model to a schema; the reply is checked anyway.
_REPLY_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "judgement",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "verdict": {"type": "string", "enum": [str(label) for label in OpinionLabel]},
                "probability": {"type": "number"},
            },
            "required": ["verdict", "probability"],
            "additionalProperties": False,
        },
    },
}


class Chat:
    """Posts one sentence at a time. Whatever is not a judgement in time, a redirect too, is OpinionFailed.

    All calls have to come from one thread, which must not be the model's.
    """

    def __init__(self, settings: Settings) -> None:
        url, key = settings.second_opinion_url, settings.second_opinion_api_key
        if url is None:
            raise ValueError("no endpoint is set")
        self._url = url.get_secret_value()
        self._name = settings.second_opinion_name or ""
        self._timeout_s = settings.second_opinion_timeout_s
        self._headers = {"User-Agent": user_agent()}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key.get_secret_value()}"
        self._loop = asyncio.Runner()
        # What stays on this machine is not for a proxy.
        self._client = httpx2.AsyncClient(timeout=self._timeout_s, trust_env=self._url.startswith("https:"))

    @property
    def verifier(self) -> str:
        """The endpoint's name of its model, and the prompt."""
        return f"{self._name} {PROMPT}"

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    def judge(self, question: str, passages: Sequence[str], answer: str, sentence: str) -> Opinion:
        """Ask the model. Raises OpinionFailed."""
        reply = self._loop.run(self._post(data_message(question, passages, answer, sentence)))
        judgement = _judgement(reply)
        return Opinion(judgement.verdict, judgement.probability, self.verifier)

    async def _post(self, data: str) -> bytes:
        asked = {
            "model": self._name,
            "temperature": 0,
            "max_tokens": MAX_REPLY_TOKENS,
            "response_format": _REPLY_FORMAT,
            "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": data}],
        }
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", self._url, json=asked, headers=self._headers) as response,
            ):
                if response.status_code != HTTPStatus.OK:
                    raise OpinionFailed(f"status {response.status_code}")
                return await _body(response)
        except (httpx2.HTTPError, TimeoutError) as error:
            # The error's own words may hold the address, and with it a token.
            raise OpinionFailed(type(error).__name__) from None


async def _body(response: httpx2.Response) -> bytes:
    read = bytearray()
    async for part in response.aiter_bytes():
        read += part
        if len(read) > MAX_REPLY_BYTES:
            raise OpinionFailed("reply_too_long")
    return bytes(read)


def _judgement(reply: bytes) -> Judgement:
    try:
        content = _Completion.model_validate_json(reply).choices[0].message.content
    except ValidationError:
        raise OpinionFailed("not_a_completion") from None
    try:
        return Judgement.model_validate_json(content)
    except ValidationError:
        raise OpinionFailed("not_a_judgement") from None
