from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.documents import (
    documents_beside_answer,
    documents_of,
    looks_retrieved,
    read_document,
    read_documents,
)
from schemas.traces.step import Document

PLAIN: JsonObject = {"page_content": "Tea is hot.", "id": "d-1", "metadata": {"source": "tea.md", "score": 0.5}}
CONSTRUCTOR: JsonObject = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "document", "Document"],
    "kwargs": {**PLAIN, "type": "Document"},
}


def known(logged: JsonValue) -> tuple[str | None, str | None, float | None]:
    document = read_document(logged)
    assert document is not None
    return document.id, document.text, document.score


@pytest.mark.parametrize(
    "logged",
    [
        PLAIN,
        CONSTRUCTOR,
        {"pageContent": "Tea is hot.", "id": "d-1", "metadata": {"relevance_score": 0.5, "score": 0.1}},
        {"text": "Tea is hot.", "id": "d-1", "score": 0.5},
        {"content": "Tea is hot.", "id": "d-1", "score": "0.5", "meta": {"id": "other"}},
        {"content": [{"type": "text", "text": "Tea is hot."}], "docId": "d-1", "score": 0.5},
        {"node": {"id_": "d-1", "text": "Tea is hot.", "class_name": "TextNode"}, "score": 0.5},
        {"node": {"id_": "d-1", "text_resource": {"text": "Tea is hot."}}, "score": 0.5},
        {"_index": "i", "_id": "d-1", "_score": 0.5, "_source": {"body": "Tea is hot."}},
        {"id": "d-1", "version": 3, "score": 0.5, "payload": {"page_content": "Tea is hot.", "metadata": {}}},
        {"id": "d-1", "score": 0.5, "values": [], "metadata": {"text": "Tea is hot."}},
        {"document": CONSTRUCTOR, "score": 0.5},
        {"document": "Tea is hot.", "id": "d-1", "score": 0.5},
        {"text": "Tea is hot.", "metadata": '{"_id": "d-1", "similarity": 0.5}'},
        [{"page_content": "Tea is hot.", "id": "d-1", "metadata": {"score": 0.9}}, 0.5],
    ],
)
def test_a_document_is_read_in_the_spelling_of_any_framework(logged: JsonValue) -> None:
    assert known(logged) == ("d-1", "Tea is hot.", 0.5)


@pytest.mark.parametrize(
    ("metadata", "document_id"),
    [
        ({"chunk_id": 7, "doc_id": None, "source": "a"}, "7"),
        ({"_id": "x", "chunk_id": "y"}, "x"),
        ({"source": "tea.md", "page": 0}, "tea.md#0"),
        ({"source": "tea.md"}, None),
        ({"page": 4}, None),
    ],
)
def test_without_an_id_of_its_own_the_metadata_name_a_document(metadata: JsonObject, document_id: str | None) -> None:
    assert known({"id": None, "page_content": "T", "metadata": metadata})[0] == document_id


def test_what_else_is_known_is_kept_but_for_embeddings() -> None:
    document = read_document({**PLAIN, "embedding": [0.1] * 9, "filename": "tea.md", "type": "Document", "x": None})
    assert document is not None
    assert document.metadata == {"source": "tea.md", "score": 0.5, "filename": "tea.md"}


def test_a_document_that_is_only_named_has_no_text() -> None:
    assert read_document({"id": "d-1", "score": 0.2}) == Document(id="d-1", score=0.2)


def test_a_blank_text_gives_way_to_one_that_says_something() -> None:
    assert known({"text": " ", "content": "T"})[1] == "T"
    assert known({"text": " ", "content": None})[1] == " "


@pytest.mark.parametrize(
    "logged",
    [
        {"score": 0.3},
        {"role": "user", "content": "Is tea hot?", "id": "m"},
        {"type": "human", "content": "Is tea hot?"},
        "page_content='Tea is hot.' metadata={}",
        "<NodeWithScore(node=TextNode(id_=d-1), score=0.5)>",
        "Document(id='d-1', page_content='Tea is hot.')",
        [PLAIN, "high"],
        [PLAIN, PLAIN],
        7,
        None,
    ],
)
def test_what_is_no_document_is_none(logged: JsonValue) -> None:
    assert read_document(logged) is None


def test_a_list_is_read_whole_or_not_at_all() -> None:
    assert read_documents(["A", None, {"text": "B"}]) == (Document(text="A"), Document(text=""), Document(text="B"))
    assert read_documents([]) == ()
    assert read_documents([{"text": "A"}, 7]) is None
    assert read_documents("A") is None


@pytest.mark.parametrize(
    "output",
    [
        [PLAIN],
        [[PLAIN]],
        [[PLAIN, 0.5]],
        {"documents": [CONSTRUCTOR]},
        {"output": {"source_nodes": [{"node": {"text": "Tea is hot.", "id_": "d-1"}, "score": 0.5}]}},
        {"matches": [{"id": "d-1", "score": 0.5, "metadata": {"text": "Tea is hot."}}], "namespace": ""},
        orjson.dumps({"documents": [PLAIN]}).decode(),
        {"documents": orjson.dumps([PLAIN]).decode()},
        {"ids": [["d-1"]], "documents": [["Tea is hot."]], "metadatas": [[{"score": 0.5}]], "distances": [[0.1]]},
        {"ids": ["d-1"], "documents": ["Tea is hot."], "metadatas": [{"score": 0.5}]},
    ],
)
def test_the_documents_lie_in_an_output_bare_or_under_a_name(output: JsonValue) -> None:
    (document,) = documents_of(output) or ()
    assert (document.id, document.text, document.score) == ("d-1", "Tea is hot.", 0.5)


@pytest.mark.parametrize("output", [None, "a text", {"answer": "A"}, {"ids": ["1"], "documents": ["a", "b"]}, [7]])
def test_an_output_without_a_list_of_documents_has_none(output: JsonValue) -> None:
    assert documents_of(output) is None


def test_an_empty_list_of_documents_is_one() -> None:
    assert documents_of({"documents": []}) == ()


def test_lists_in_lists_end_somewhere() -> None:
    output: JsonValue = [PLAIN]
    for _ in range(90):
        output = {"output": output}
    assert documents_of(output) is None


@pytest.mark.parametrize(
    ("output", "looks"),
    [
        ([PLAIN], True),
        ({"documents": [PLAIN], "query": "Q"}, True),
        (orjson.dumps([PLAIN]).decode(), True),
        ([[PLAIN, 0.5]], True),
        ({"output": [PLAIN]}, True),
        ({"documents": [PLAIN], "answer": "A"}, False),
        ({"documents": [PLAIN], "generation": "A"}, False),
        ([{"role": "assistant", "content": "A", "id": "m"}], False),
        ([{"type": "text", "text": "A"}], False),
        (["a text", "another"], False),
        ([{"id": "d-1"}], False),
        ([], False),
        ("a text", False),
        ({"input": "Q", "context": [PLAIN]}, True),
        ({"input": "Q", "context": [PLAIN], "answer": "A"}, False),
        ({"documents": [PLAIN], "context": [PLAIN]}, False),
    ],
)
def test_a_list_of_documents_shows_that_a_step_retrieves(output: JsonValue, *, looks: bool) -> None:
    assert looks_retrieved(output) is looks


def test_a_step_that_is_named_for_it_may_find_texts_or_nothing() -> None:
    assert looks_retrieved(["a text"], is_named=True)
    assert looks_retrieved({"results": []}, is_named=True)
    assert not looks_retrieved("a text", is_named=True)


@pytest.mark.parametrize(
    "output",
    [
        {"answer": "A", "context": [PLAIN]},
        {"output": {"result": "A", "source_documents": [CONSTRUCTOR]}},
        {"answer": "A", "contexts": orjson.dumps([PLAIN]).decode()},
    ],
)
def test_documents_lie_beside_an_answer_under_a_common_name(output: JsonValue) -> None:
    assert [document.id for document in documents_beside_answer(output) or ()] == ["d-1"]


@pytest.mark.parametrize("output", ["A", ["a", "b"], {"output": ["a", "b"]}, {"answer": "A", "context": "a text"}])
def test_texts_beside_an_answer_are_no_documents_without_a_name_for_them(output: JsonValue) -> None:
    assert documents_beside_answer(output) is None


def test_an_object_of_a_framework_may_be_json_in_a_string_and_other_json_is_a_passage() -> None:
    node: JsonValue = {"node": {"id_": "d-1", "text": "Tea is hot.", "class_name": "TextNode"}, "score": 0.5}
    assert known(orjson.dumps(node).decode()) == ("d-1", "Tea is hot.", 0.5)
    assert read_document('{"tea": "hot"}') == Document(text='{"tea": "hot"}')
    assert read_document('{"page_content": ') == Document(text='{"page_content": ')


def test_a_list_that_no_retriever_gives_is_not_taken_for_one() -> None:
    assert looks_retrieved([PLAIN] * 10_000)
    assert not looks_retrieved([PLAIN] * 10_001)
