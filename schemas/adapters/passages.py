"""The passages of a row, in every form in which frameworks and people log them, in native form."""

from __future__ import annotations

from pydantic import JsonValue

from schemas.adapters.spelling import respelled
from schemas.errors import UnusablePayload
from schemas.interaction import MAX_ID_CHARS, MAX_PASSAGES
from schemas.payload import JsonObject
from schemas.printed import printed_list, printed_object, printed_objects
from schemas.reject_reason import RejectReason
from schemas.traces.documents import ID_NAMES, METADATA_NAMES, SCORE_NAMES, TEXT_NAMES, documents_of, read_document
from schemas.traces.step import Document
from schemas.values import as_identifier, as_number, as_parsed, merged

_CONTENT = "page_content"
_NAMES = (*TEXT_NAMES, *ID_NAMES, *SCORE_NAMES, *METADATA_NAMES)
# What a print of a document begins with, of which the text cannot be had where it is no whole one.
_SHORTENED = (
    ("Node ID: ", "a print of a LlamaIndex node, which is shortened"),
    ("<Document: {", "a print of a Haystack document"),
    ("NodeWithScore(", "a print of a LlamaIndex node"),
    ("TextNode(", "a print of a LlamaIndex node"),
    ("ScoredPoint(", "a print of a point of Qdrant"),
    ("Document(id=", "a print of a document, not whole"),
    ("Document(content=", "a print of a document"),
    (f"Document({_CONTENT}=", "a print of a LangChain document, not whole"),
    ("Document(metadata={", "a print of a LangChain document, not whole"),
    (f"{_CONTENT}='", "a print of a LangChain document, not whole"),
    (f'{_CONTENT}="', "a print of a LangChain document, not whole"),
)


def read_passages(logged: JsonValue, path: str, *, ids: JsonValue = None, scores: JsonValue = None) -> list[JsonValue]:
    """Return the passages in native form. ``ids`` and ``scores`` may be lists beside them, one for each passage.

    Raises UnusablePayload (wrong_shape), naming ``path`` and what lies below it.
    """
    listed = _listed(logged)
    if listed is None:
        raise _wrong(path, "must be a list or a string")
    if len(listed) > MAX_PASSAGES:
        raise _wrong(path, f"must hold at most {MAX_PASSAGES} passages")
    beside = (_column(ids, len(listed)), _column(scores, len(listed)))
    return [_passage(one, f"{path}.{at}", at, *beside) for at, one in enumerate(listed)]


def is_column(logged: JsonValue, passages: JsonValue) -> bool:
    """Whether a list has one value for each passage."""
    listed = _listed(passages)
    return listed is not None and _column(logged, len(listed)) is not None


def _listed(logged: JsonValue) -> list[JsonValue] | None:
    """The passages one by one: of a list, of a list in a string, of the answer of a store; a single text is one."""
    if isinstance(logged, str):
        return _of_text(logged)
    if isinstance(logged, dict):
        documents = documents_of(logged)
        return None if documents is None else [_as_logged(document) for document in documents]
    return logged if isinstance(logged, list) else None


def _of_text(logged: str) -> list[JsonValue]:
    parsed = as_parsed(logged)
    if isinstance(parsed, list | dict):
        listed = _listed(parsed) if not isinstance(parsed, list) or _may_be_passages(parsed) else None
        return [logged] if listed is None else listed
    printed = printed_objects(logged, needs=_CONTENT, limit=MAX_PASSAGES) or _texts(printed_list(logged))
    return [logged] if printed is None else printed


def _may_be_passages(listed: list[JsonValue]) -> bool:
    return all(one is None or isinstance(one, str | dict) for one in listed)


def _texts(listed: list[JsonValue] | None) -> list[JsonValue] | None:
    """What pandas makes of a column of lists: a list of texts, printed."""
    return listed if listed and all(isinstance(one, str) for one in listed) else None


def _as_logged(document: Document) -> JsonValue:
    return document.model_dump(mode="json", exclude_none=True)


def _column(logged: JsonValue, length: int) -> list[JsonValue] | None:
    return logged if isinstance(logged, list) and len(logged) == length else None


def _passage(
    logged: JsonValue, path: str, at: int, ids: list[JsonValue] | None, scores: list[JsonValue] | None
) -> JsonValue:
    """Return one passage in native form; one without text (null) is kept as a blank, to keep the positions."""
    document = _with_short_id(_document(logged, path))
    own_id = document.id or (as_identifier(ids[at]) if ids else None) or f"ctx-{at + 1}"
    score = document.score if document.score is not None or not scores else as_number(scores[at])
    passage: JsonObject = {"id": own_id, "text": document.text or ""}
    if score is None and not document.metadata and not isinstance(logged, dict | list):
        return passage
    return {**passage, "score": score, "metadata": document.metadata}


def _with_short_id(document: Document) -> Document:
    """An id that is too long to be one is kept as metadata."""
    if document.id is None or len(document.id) <= MAX_ID_CHARS:
        return document
    return document.model_copy(update={"id": None, "metadata": merged(document.metadata, {"id": document.id})})


def _document(logged: JsonValue, path: str) -> Document:
    if logged is None:
        return Document(text="")
    if isinstance(logged, str):
        return _document_of_text(logged, path)
    if not isinstance(logged, dict | list):
        raise _wrong(path, "must be a string or an object")
    document = read_document(logged)
    if (document is None or document.text is None) and isinstance(logged, dict):
        # As .NET and others write names.
        document = read_document(respelled(logged, _NAMES)) or document
    if document is not None and document.text is not None:
        return document
    if isinstance(logged, list):
        raise _wrong(path, "must be a string or an object")
    return _blank(logged, document, path)


def _blank(logged: JsonObject, document: Document | None, path: str) -> Document:
    """A passage whose text is null says nothing; one that has no text, or something else for it, is none."""
    if isinstance(logged.get("role"), str):
        raise _wrong(path, "must be a document, and is a message")
    names = [name for name in TEXT_NAMES if name in logged]
    if not names:
        raise _wrong(f"{path}.{TEXT_NAMES[0]}", "missing")
    given = next((name for name in names if logged[name] is not None), None)
    if given is not None:
        raise _wrong(f"{path}.{given}", "must be a string")
    return (document or Document()).model_copy(update={"text": ""})


def _document_of_text(logged: str, path: str) -> Document:
    """A text, or the document that was printed or dumped in it."""
    parsed = as_parsed(logged) if _CONTENT in logged else None
    found = parsed if isinstance(parsed, dict) else printed_object(logged, needs=_CONTENT)
    document = read_document(found) if found is not None else None
    if document is not None and document.text is not None:
        return document
    for beginning, what in _SHORTENED:
        if logged.startswith(beginning):
            raise _wrong(path, f"is {what}; log the document's fields instead")
    return Document(text=logged)


def _wrong(path: str, rule: str) -> UnusablePayload:
    return UnusablePayload(RejectReason.WRONG_SHAPE, f"{path}: {rule}")
