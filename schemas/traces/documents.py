"""Retrieved documents as any framework, vector store or tracing system logs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.step import Document
from schemas.values import as_identifier, as_number, as_object, as_parsed, as_text, merged

_T = TypeVar("_T")

# In order of precedence; in JavaScript the same names are written in camel case.
TEXT_NAMES = ("text", "content", "page_content", "pageContent", "passage", "body", "chunk", "chunk_text", "snippet")
ID_NAMES = ("id", "id_", "_id", "doc_id", "docId", "document_id", "documentId", "chunk_id", "chunkId", "node_id")
SCORE_NAMES = (
    "score",
    "relevance_score",
    "relevanceScore",
    "_score",
    "similarity",
    "similarity_score",
    "@search.score",
)
METADATA_NAMES = ("metadata", "meta", "extra_info")
LIST_NAMES = (
    "documents",
    "docs",
    "retrieved_documents",
    "source_documents",
    "source_nodes",
    "nodes",
    "passages",
    "chunks",
    "matches",
    "hits",
    "points",
    "results",
    "contexts",
)

# LlamaIndex writes an object with the text; Chroma and wrappers have the text alone.
_RARER_TEXT_NAMES = ("text_resource", "document")
_METADATA_ID_NAMES = ("id", "_id", "doc_id", "docId", "document_id", "documentId", "chunk_id", "chunkId")
# A reranker leaves the retriever's score beside its own.
_METADATA_SCORE_NAMES = ("relevance_score", "relevanceScore", "score", "_score", "similarity", "similarity_score")
# LlamaIndex, Elasticsearch, Qdrant, Weaviate and Vespa; a document in a pair or in a wrapper of one's own.
_WRAPPERS = ("node", "_source", "payload", "properties", "fields", "document", "doc")
_MAX_WRAPPERS = 3
# How far down an output its list of documents may lie.
_MAX_LEVELS = 4
_LEVELS = (*LIST_NAMES, "context", "output", "outputs", "result", "data")
# Where nothing but a list of documents may lie, and what may stand beside it there.
_ALONE = (*LIST_NAMES, "context", "output", "outputs", "result")
_SEARCHED = {"query", "question", "input", "k", "top_k", "scores", "total", "count", "namespace", "usage", "took"}
# Says what is no part of what was retrieved: embeddings are long, and names of classes say nothing.
_NOT_METADATA = ("embedding", "sparse_embedding", "vector", "vectors", "class_name", "type", "blob", "lc")
_SPEAKERS = ("human", "ai", "system", "tool", "function", "AIMessageChunk")
# What Python writes for an object that no encoder knew. It is no passage.
# No retriever gives as many as that; a table does.
_MAX_LISTED = 10_000
_OF_FRAMEWORKS = ("node", "page_content", "class_name", "lc")
_REPR = re.compile(r"<?(?:Document|NodeWithScore|TextNode|ScoredPoint)\b.{0,3}[(]|page_content=|Node ID: ")


def read_document(logged: JsonValue) -> Document | None:
    """Return what is known of a document: of an object, a text, or a pair of a document and its score.

    ``text`` is None where the log names a document without what it says. None for what is no document: an object with
    neither text nor id, a message of a conversation, the repr of an object.
    """
    if isinstance(logged, str):
        return _from_text(logged)
    if isinstance(logged, list):
        return _scored(logged)
    return _from_object(logged) if isinstance(logged, dict) else None


def completed(document: Document) -> Document:
    """Return the document with the id and the score that its metadata hold, where it has none of its own."""
    document_id, score = document.id, document.score
    if document_id is None:
        document_id = _id_in(document.metadata)
    if score is None:
        score = _first(document.metadata, _METADATA_SCORE_NAMES, as_number)
    return document.model_copy(update={"id": document_id, "score": score})


def is_placed(document: Document) -> bool:
    """Whether the id of a document is only the place that its metadata give, which others may know a better id for."""
    return document.id is not None and document.id == _place(document.metadata)


def read_documents(logged: JsonValue) -> tuple[Document, ...] | None:
    """Return the documents of a list, in its order; None if it is no list, or holds what is no document.

    A null keeps its place, as a document that says nothing.
    """
    if not isinstance(logged, list):
        return None
    documents = [Document(text="") if one is None else read_document(one) for one in logged]
    known = tuple(document for document in documents if document is not None)
    return known if len(known) == len(documents) else None


def documents_of(output: JsonValue) -> tuple[Document, ...] | None:
    """Return the documents in the output of a step that is known to retrieve; None if there is no list of them.

    The list is the output itself, or lies in it under a common name.
    """
    return _found(output, _MAX_LEVELS)


def documents_beside_answer(output: JsonValue) -> tuple[Document, ...] | None:
    """Return the documents that a chain gives back with its answer, under a common name; None if there is no list."""
    output = as_parsed(output)
    for _ in range(_MAX_WRAPPERS):
        if not isinstance(output, dict):
            return None
        found = (read_documents(as_parsed(output[name])) for name in (*LIST_NAMES, "context") if name in output)
        documents = next((documents for documents in found if documents is not None), None)
        if documents is not None:
            return documents
        output = as_parsed(next((output[name] for name in ("output", "outputs", "result") if name in output), None))
    return None


def looks_retrieved(output: JsonValue, *, is_named: bool = False) -> bool:
    """Whether the output of a step of unknown kind is a list of documents and nothing else, bare or under a usual name.

    Each must have a text, and an id, a score or metadata, as no message and no part of a prompt has. Where the step is
    named for it (``is_named``), texts alone will do, and so will an empty list.
    """
    listed = _list_alone(as_parsed(output))
    if isinstance(listed, list) and len(listed) > _MAX_LISTED:
        return False
    documents = read_documents(listed)
    if documents is None or is_named:
        return documents is not None
    return bool(documents) and all(_is_evident(document) for document in documents)


def _list_alone(output: JsonValue) -> JsonValue:
    """The list that an output is, or holds beside what one searched for."""
    if not isinstance(output, dict):
        return output
    lists = {name: listed for name in _ALONE if isinstance(listed := as_parsed(output.get(name)), list)}
    return next(iter(lists.values())) if len(lists) == 1 and output.keys() - lists.keys() <= _SEARCHED else None


def _found(output: JsonValue, levels: int) -> tuple[Document, ...] | None:
    output = as_parsed(output)
    if isinstance(output, list):
        documents = read_documents(output)
        return read_documents(output[0]) if documents is None and len(output) == 1 else documents
    if not isinstance(output, dict) or not levels:
        return None
    if "ids" in output and "documents" in output:
        return _of_columns(output)
    found = (_found(output[name], levels - 1) for name in _LEVELS if output.get(name) is not None)
    return next((documents for documents in found if documents is not None), None)


def _is_evident(document: Document) -> bool:
    return document.text is not None and (
        document.id is not None or document.score is not None or bool(document.metadata)
    )


def _of_columns(columns: JsonObject) -> tuple[Document, ...] | None:
    """Read what Chroma gives for one query: a column for each of the facts, in a list for each query or without."""
    texts, ids = _column(columns.get("documents")), _column(columns.get("ids"))
    metadatas = _column(columns.get("metadatas")) or [None] * len(texts or ())
    if texts is None or ids is None or not len(texts) == len(ids) == len(metadatas):
        return None
    rows = zip(texts, ids, metadatas, strict=True)
    return read_documents([{"text": text, "id": own, "metadata": metadata} for text, own, metadata in rows])


def _column(logged: JsonValue) -> list[JsonValue] | None:
    column = logged[0] if isinstance(logged, list) and len(logged) == 1 and isinstance(logged[0], list) else logged
    return column if isinstance(column, list) else None


def _from_text(logged: str) -> Document | None:
    """Read a text: the passage itself, or an object of a framework that an encoder wrote as JSON in a string."""
    if _REPR.match(logged):
        return None
    inner = as_parsed(logged) if logged.startswith("{") else None
    is_framework = isinstance(inner, dict) and any(name in inner for name in _OF_FRAMEWORKS)
    return _from_object(inner) if is_framework and isinstance(inner, dict) else Document(text=logged)


def _scored(pair: list[JsonValue]) -> Document | None:
    """Read what ``similarity_search_with_score`` gives: a document and its score."""
    if len(pair) != 2 or not isinstance(pair[0], dict):
        return None
    document, score = _from_object(pair[0]), as_number(pair[1])
    return document.model_copy(update={"score": score}) if document and score is not None else None


def _from_object(logged: JsonObject) -> Document | None:
    rest = _unwrapped(logged)
    if isinstance(rest.get("role"), str) or rest.get("type") in _SPEAKERS:
        return None
    metadata = _metadata(rest)
    text = _text(rest)
    explicit_id, score = _first(rest, ID_NAMES, as_identifier), _first(rest, SCORE_NAMES, as_number)
    if text is None:
        # Pinecone and others keep the text where the rest is kept.
        text = _text(metadata)
    document_id = explicit_id or _id_in(metadata)
    if text is None and document_id is None:
        return None
    if score is None:
        score = _first(metadata, _METADATA_SCORE_NAMES, as_number)
    return Document(text=text, id=document_id, score=score, metadata=_kept(rest, metadata, (text, explicit_id, score)))


def _unwrapped(logged: JsonObject) -> JsonObject:
    """Lay the fields of the wrappers, where id and score may stand, beside those of the document."""
    for _ in range(_MAX_WRAPPERS):
        if "lc" in logged and isinstance(constructed := logged.get("kwargs"), dict):
            logged = constructed
            continue
        name = next((name for name in _WRAPPERS if isinstance(logged.get(name), dict)), None)
        if name is None or _text(logged) is not None:
            break
        inner = as_object(logged[name]) or {}
        outer = {key: value for key, value in logged.items() if key != name and value is not None}
        logged = {**inner, **outer}
    return logged


def _text(fields: JsonObject) -> str | None:
    """Return the first text that says something, else one that is there and blank."""
    names = (*TEXT_NAMES, *_RARER_TEXT_NAMES)
    texts = [text for name in names if (text := _plain(fields.get(name))) is not None]
    return next((text for text in texts if text.strip()), texts[0] if texts else None)


def _plain(value: JsonValue) -> str | None:
    """Return a text, or the texts of the parts that it is written in, each on a line of its own."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        inner = value.get("text")
        return inner if isinstance(inner, str) else None
    if not isinstance(value, list):
        return None
    parts = [part if isinstance(part, str) else _plain(part) for part in value if isinstance(part, str | dict)]
    return "\n".join(part for part in parts if part is not None) or None


def _metadata(fields: JsonObject) -> JsonObject:
    return _first(fields, METADATA_NAMES, lambda value: as_object(as_parsed(value))) or {}


def _id_in(metadata: JsonObject) -> str | None:
    return _first(metadata, _METADATA_ID_NAMES, as_identifier) or _place(metadata)


def _place(metadata: JsonObject) -> str | None:
    """A page of a source, where neither alone names a passage."""
    source, page = as_text(metadata.get("source")), as_identifier(metadata.get("page"))
    return f"{source}#{page}" if source and page is not None else None


def _first(fields: JsonObject, names: tuple[str, ...], read: Callable[[JsonValue], _T | None]) -> _T | None:
    """Return the first value under one of the names that ``read`` makes something of."""
    values = (read(fields[name]) for name in names if name in fields)
    return next((value for value in values if value is not None), None)


def _kept(fields: JsonObject, metadata: JsonObject, read: tuple[str | None, str | None, float | None]) -> JsonObject:
    """The metadata with every other field that says something: what was ``read`` of text, id and score is left out."""
    text, document_id, score = read

    def is_read(name: str, value: JsonValue) -> bool:
        return (
            (name in (*TEXT_NAMES, *_RARER_TEXT_NAMES) and text is not None and _plain(value) == text)
            or (name in ID_NAMES and document_id is not None and as_identifier(value) == document_id)
            or (name in SCORE_NAMES and score is not None and as_number(value) == score)
            or (name in METADATA_NAMES and as_object(as_parsed(value)) == metadata)
        )

    others: JsonObject = {
        name: value
        for name, value in fields.items()
        if value is not None and name not in _NOT_METADATA and not is_read(name, value)
    }
    return merged(metadata, others)
