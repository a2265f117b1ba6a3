from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.printed import printed_list, printed_object, printed_objects

NEEDS = "page_content"
DOCUMENT = "page_content='Tea is hot.' metadata={'source': 'tea.md', 'page': 4}"


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        "Document(metadata={'source': 'tea.md', 'page': 4}, page_content='Tea is hot.')",
        "Document(page_content=\"Tea is hot.\", metadata={'source': 'tea.md', 'page': 4})",
    ],
)
def test_a_printed_document_is_read(text: str) -> None:
    assert printed_object(text, needs=NEEDS) == {
        "page_content": "Tea is hot.",
        "metadata": {"source": "tea.md", "page": 4},
    }


def test_what_is_no_literal_is_kept_as_its_text() -> None:
    text = "Document(id=None, metadata={'at': datetime.datetime(2026, 1, 2), 'n': nan}, page_content='T')"
    assert printed_object(text, needs=NEEDS) == {
        "id": None,
        "metadata": "{'at': datetime.datetime(2026, 1, 2), 'n': nan}",
        "page_content": "T",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Tea is hot.",
        "page_content='Tea is",
        DOCUMENT + " and more",
        DOCUMENT[:-1],
        "metadata={}",
        "page_content='T' metadata=" + "[" * 100_000,
        "page_content='T' " + "a=1 " * 1_000,
        "page_content=b'T'",
        "page_content=__import__('os').name",
        r"page_content='\q'",
        "Document(page_content='T'",
    ],
)
def test_what_is_no_whole_object_is_none(text: str) -> None:
    found = printed_object(text, needs=NEEDS)
    assert found is None or found[NEEDS] == text.removeprefix("page_content=")


def test_a_list_of_printed_documents_is_read_up_to_a_limit() -> None:
    one = "Document(metadata={}, page_content='T')"
    assert printed_objects(f"[{one}, {one}]", needs=NEEDS, limit=2) == [{"metadata": {}, "page_content": "T"}] * 2
    assert len(printed_objects(f"[{', '.join([one] * 9)}]", needs=NEEDS, limit=2) or []) == 3
    for text in ("[]", f"[{one}", f"[{one} {one}]", f"[{one}, 5]", one):
        assert printed_objects(text, needs=NEEDS, limit=2) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a', \"it's\"]", ["a", "it's"]),
        ("[1, -2.5, None, True, {'a': (1, 2)}]", [1, -2.5, None, True, {"a": [1, 2]}]),
        ("[1e999, 99999999999999999999]", [None, 1e20]),
        # What numpy prints has no commas: the texts would run into one.
        ("['a' 'b']", None),
        ("['a', open('b')]", None),
        ("['a'] + ['b']", None),
        ("[" * 60 + "]" * 60, None),
        ("'a'", None),
        ("[{[]: 1}]", None),
    ],
)
def test_a_printed_list_is_read_if_it_is_a_literal(text: str, value: JsonValue) -> None:
    assert printed_list(text) == value


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    assert printed_list(r"['a\x00b', '\ud83d']") == ["a\ufffdb", "\ufffd"]


@given(st.text(), st.dictionaries(st.text(), st.none() | st.booleans() | st.text() | st.integers(-9, 9)))
def test_whatever_python_prints_is_read_back(content: str, metadata: dict[str, JsonValue]) -> None:
    found = printed_object(f"page_content={content!r} metadata={metadata!r}", needs=NEEDS)
    if "\x00" not in content + repr(metadata) and r"\x00" not in repr(metadata):
        assert found == {"page_content": content, "metadata": metadata}
