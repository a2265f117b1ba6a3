"""Amazon Bedrock's RetrieveAndGenerate, which gives of what it retrieved only what the answer cites."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.aws_documents import bedrock_document
from schemas.adapters.call import CITED_ONLY, Api, Call, Said, call_of, distinct, exchange, has_response, objects_in
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.values import as_object, as_text

_MISSING = "citations: cite nothing, and the response has no other passages; log those of Retrieve beside it"


@dataclass(frozen=True, slots=True)
class BedrockAdapter:
    """Reads a response with its request or without: then the question is absent.

    A sentence without a citation may rest on a passage that is not there: the exchange says ``evidence: cited_only``.
    The session is kept as metadata: it has many exchanges.
    """

    name: str = "bedrock_retrieve_and_generate"

    def matches(self, row: JsonObject, headers: Headers) -> bool:  # noqa: ARG002 - the row alone tells
        """Whether the row is a response, or has one."""
        return has_response(row, _API)

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give the exchange, or say that nothing was answered. Raises UnusablePayload (wrong_shape)."""
        call = call_of(row, _API)
        answer = (as_object(call.response.get("output")) or {}).get("text")
        if not isinstance(answer, str) or not answer.strip():
            return (SkipReason.NO_ANSWER,)
        cited = objects_in(call.response.get("citations"))
        references = [one for citation in cited for one in objects_in(citation.get("retrievedReferences"))]
        documents = None if call.logged is not None else distinct(map(bedrock_document, references)) or None
        said = Said(
            answer,
            documents,
            question=as_text((as_object(call.request.get("input")) or {}).get("text")),
            id=(as_object(call.response.get("ResponseMetadata")) or {}).get("RequestId"),
            model=_model(call),
            metadata=CITED_ONLY if documents else {},
        )
        return (exchange(call, said, fmt=self.name, missing=_MISSING),)


def _response(value: JsonValue) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(output := value.get("output"), dict):
        return None
    is_response = isinstance(value.get("citations"), list) or "sessionId" in value
    return value if is_response and isinstance(output.get("text"), str) else None


def _model(call: Call) -> JsonValue:
    configuration = as_object(call.request.get("retrieveAndGenerateConfiguration")) or {}
    kinds = (as_object(configuration.get(name)) for name in configuration)
    return next((kind["modelArn"] for kind in kinds if kind and "modelArn" in kind), None)


_API = Api(_response, words=("output",), request_names=("input", "retrieveAndGenerateConfiguration"))
