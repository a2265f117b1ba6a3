"""Results as assessments of MLflow's traces.

MLflow gives assessments ids of its own, so that a repeat is another one; its metadata has our id, which tells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from urllib.parse import quote

import orjson

from worker.export.post import JSON, Lookup, Post
from worker.rules.exports import AnswerResults, Result

RESULT_ID = "gasp.result_id"
_OUR_ID = re.compile(rb'"gasp\.result_id"\s*:\s*"([0-9a-f-]{36})"')


class MlflowExport:
    """Posts to the REST API of a tracking server."""

    def __init__(self, url: str, token: str) -> None:
        self._traces = f"{url}/api/3.0/mlflow/traces"
        self._headers = JSON | ({"Authorization": f"Bearer {token}"} if token else {})

    def posts(self, answer: AnswerResults) -> Iterator[Post]:
        """A request for each result."""
        url = f"{self._of(answer)}/assessments"
        for result in answer.results:
            body = orjson.dumps({"assessment": _assessment(answer, result)})
            yield Post(frozenset({str(result.id)}), url, body, self._headers)

    def lookup(self, answer: AnswerResults) -> Lookup:
        """The trace, which has its assessments."""
        return Lookup(self._of(answer), _ids, self._headers)

    def _of(self, answer: AnswerResults) -> str:
        return f"{self._traces}/{quote(answer.trace_id, safe='')}"


def _ids(body: bytes) -> frozenset[str]:
    """Our ids among the assessments of a trace, wherever in the answer they lie."""
    return frozenset(match.decode() for match in _OUR_ID.findall(body))


def _assessment(answer: AnswerResults, result: Result) -> dict[str, object]:
    time = answer.scored_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    place = {"sentence": result.sentence, "start": result.start, "end": result.end}
    return {
        "assessment_name": result.name if result.sentence is None else f"{result.name}.{result.sentence}",
        "trace_id": answer.trace_id,
        **({"span_id": answer.span_id} if answer.span_id else {}),
        "source": {"source_type": "CODE", "source_id": "gasp-audit"},
        "create_time": time,
        "last_update_time": time,
        "feedback": {"value": result.score},
        "rationale": f"{result.label}: {result.explanation}",
        "metadata": {
            RESULT_ID: str(result.id),
            "app": answer.app,
            "scorer": answer.scorer,
            **{name: str(value) for name, value in place.items() if value is not None},
        },
        "valid": True,
    }
