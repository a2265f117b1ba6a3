"""Results as scores of Langfuse. A score that is posted again under its id replaces itself."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import orjson

from worker.export.post import JSON, Post
from worker.rules.exports import AnswerResults, Result


class LangfuseExport:
    """Posts to the public API of a Langfuse server, with a project's keys."""

    def __init__(self, url: str, public_key: str, secret_key: str) -> None:
        self._url = f"{url}/api/public/scores"
        login = base64.b64encode(f"{public_key}:{secret_key}".encode()).decode()
        self._headers = {**JSON, "Authorization": f"Basic {login}"}

    def posts(self, answer: AnswerResults) -> Iterator[Post]:
        """A request for each result that has a score."""
        for result in answer.results:
            if result.score is not None:
                yield Post(frozenset({str(result.id)}), self._url, orjson.dumps(_score(answer, result)), self._headers)

    def lookup(self, answer: AnswerResults) -> None:
        """None: a repeat replaces."""


def _score(answer: AnswerResults, result: Result) -> dict[str, object]:
    place = {"sentence": result.sentence, "start": result.start, "end": result.end}
    return {
        "id": str(result.id),
        "traceId": answer.trace_id,
        "observationId": answer.span_id,
        "name": result.name,
        "value": result.score,
        "dataType": "NUMERIC",
        "comment": f"{result.label}: {result.explanation}",
        "metadata": {
            "app": answer.app,
            "scorer": answer.scorer,
            **{name: value for name, value in place.items() if value is not None},
        },
    }
