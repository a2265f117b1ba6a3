"""Results as feedback of LangSmith."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import orjson

from worker.export.post import JSON, Post
from worker.rules.exports import AnswerResults, Result


class LangSmithExport:
    """Posts to LangSmith's API, whose address is that of LANGSMITH_ENDPOINT."""

    def __init__(self, url: str, api_key: str) -> None:
        self._url = f"{url}/feedback"
        self._headers = {**JSON, "X-API-Key": api_key}

    def posts(self, answer: AnswerResults) -> Iterator[Post]:
        """A request for each result; one that was posted before is told by its id."""
        for result in answer.results:
            body = orjson.dumps(_feedback(answer, result))
            yield Post(frozenset({str(result.id)}), self._url, body, self._headers, taken_too=(HTTPStatus.CONFLICT,))

    def lookup(self, answer: AnswerResults) -> None:
        """None: a repeat is refused."""


def _feedback(answer: AnswerResults, result: Result) -> dict[str, object]:
    place = {"sentence": result.sentence, "start": result.start, "end": result.end}
    return {
        "id": str(result.id),
        "run_id": answer.span_id or answer.trace_id,
        "trace_id": answer.trace_id,
        "key": result.name,
        "score": result.score,
        "value": result.label,
        "comment": result.explanation,
        "feedback_source": {
            "type": "model",
            "metadata": {
                "app": answer.app,
                "scorer": answer.scorer,
                **{name: value for name, value in place.items() if value is not None},
            },
        },
    }
