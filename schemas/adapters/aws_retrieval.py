"""What Kendra or a Bedrock knowledge base retrieved, in a row that has the answer beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.aws_documents import BEDROCK, KENDRA, RetrievedList, documents_in
from schemas.adapters.call import passages_of
from schemas.adapters.fields import wrong_shape
from schemas.adapters.flat import FLAT_NAMES, FlatAdapter
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.traces.step import Document
from schemas.values import as_parsed

_FLAT = FlatAdapter()
_PASSAGES = frozenset(FLAT_NAMES.passages)


@dataclass(frozen=True, slots=True)
class AwsRetrievalAdapter:
    """Reads flat rows whose passages are a list as one of the APIs gives it, or its whole response."""

    name: str
    kind: RetrievedList

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row has such a list, or is a response with one."""
        return self._place(row) is not None

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the row as a flat one. Raises UnusablePayload (wrong_shape), also for a response without an answer."""
        found = self._place(row)
        if found is None:
            return ()
        name, documents = found
        if not any(row.get(answer) is not None for answer in FLAT_NAMES.answer if answer != name):
            raise wrong_shape(FLAT_NAMES.answer[0], f"missing; {self.name} holds what was retrieved, and no answer")
        rest = {key: value for key, value in row.items() if key != name}
        return _FLAT.read({**rest, FLAT_NAMES.passages[0]: passages_of(documents, self.name)})

    def _place(self, row: JsonObject) -> tuple[str, tuple[Document, ...]] | None:
        """The name of the list, or of the response that it is in."""
        for name, logged in row.items():
            value = as_parsed(logged) if isinstance(logged, str) and name in _PASSAGES else logged
            named: JsonValue = {name: value} if name == self.kind.name else value
            if isinstance(named, list | dict) and (found := documents_in(named, (self.kind,))) is not None:
                return name, found
        return None


KENDRA_ADAPTER = AwsRetrievalAdapter("kendra_retrieve", KENDRA)
BEDROCK_ADAPTER = AwsRetrievalAdapter("bedrock_retrieve", BEDROCK)
