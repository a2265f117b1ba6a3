from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.adapters.passages import read_passages
from schemas.errors import UnusablePayload

CONSTRUCTOR: JsonValue = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "document", "Document"],
    "kwargs": {"id": "d1", "page_content": "Tea is hot.", "metadata": {"score": 0.5}},
}
DUMPED: JsonValue = {"id": None, "page_content": "Tea is hot.", "metadata": {"_id": "d1", "relevance_score": 0.5}}
PRINTED = "page_content='Tea is hot.' metadata={'_id': 'd1', 'score': 0.5}"


def known(logged: JsonValue) -> list[tuple[JsonValue, JsonValue, JsonValue]]:
    passages = [one for one in read_passages(logged, "context") if isinstance(one, dict)]
    return [(one["id"], one["text"], one.get("score")) for one in passages]


@pytest.mark.parametrize(
    "logged",
    [
        [CONSTRUCTOR],
        [DUMPED],
        [PRINTED],
        f"[Document({PRINTED.replace(' metadata', ', metadata')})]",
        [orjson.dumps(DUMPED).decode()],
        orjson.dumps([DUMPED]).decode(),
        {"documents": [DUMPED]},
        [[CONSTRUCTOR, 0.5]],
        [{"Id": "d1", "Content": "Tea is hot.", "Score": 0.5}],
        [{"node": {"id_": "d1", "text": "Tea is hot."}, "score": 0.5}],
        {"ids": [["d1"]], "documents": [["Tea is hot."]], "metadatas": [[{"score": 0.5}]]},
    ],
)
def test_documents_are_read_however_they_were_dumped(logged: JsonValue) -> None:
    assert known(logged) == [("d1", "Tea is hot.", 0.5)]


@pytest.mark.parametrize("logged", [["A", "B"], "['A', 'B']", '["A", "B"]'])
def test_texts_are_named_by_their_place(logged: JsonValue) -> None:
    assert known(logged) == [("ctx-1", "A", None), ("ctx-2", "B", None)]


@pytest.mark.parametrize("text", ['{"price": 5}', "[1, 2]", "[[1], [2]]", "Document(5)", '[{"a": 1}, "b" cut'])
def test_a_text_that_is_data_itself_stays_as_it_is(text: str) -> None:
    assert known([text]) == [("ctx-1", text, None)]


@pytest.mark.parametrize("text", ['{"price": 5}', "[1, 2]", "[[1], [2]]", "['a' 'b']"])
def test_one_text_that_is_no_list_of_passages_is_one(text: str) -> None:
    assert known(text) == [("ctx-1", text, None)]


@pytest.mark.parametrize(
    ("logged", "detail"),
    [
        (["page_content='Tea is"], "context.0: is a print of a LangChain document, not whole; log the document's"),
        (["Node ID: 5\nText: Tea is..."], "context.0: is a print of a LlamaIndex node, which is shortened; log"),
        ([{"role": "user", "content": "Tea?"}], "context.0: must be a document, and is a message"),
        (
            ["NodeWithScore(node=TextNode(id_='n1', text='Tea'), score=0.5)"],
            "context.0: is a print of a LlamaIndex node",
        ),
        (["Document(id=d1, content: 'Tea is...', score: 0.5)"], "context.0: is a print of a document, not whole"),
        ([{"id": "d1"}], "context.0.text: missing"),
        ({"a": "b"}, "context: must be a list or a string"),
        ([["a"]], "context.0: must be a string or an object"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(logged: JsonValue, detail: str) -> None:
    with pytest.raises(UnusablePayload) as raised:
        read_passages(logged, "context")
    assert raised.value.detail.startswith(detail)
