from __future__ import annotations

from collections.abc import Iterable

import pytest
from pydantic import JsonValue

from schemas.adapters import ADAPTERS, adapter_for
from schemas.adapters.adapter import Finding
from schemas.adapters.flat import FLAT_NAMES, FlatAdapter
from schemas.adapters.native import NativeAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.reject_reason import RejectReason
from schemas.values import as_identifier, as_number, merged


def only(findings: Iterable[Finding]) -> JsonObject:
    (native,) = findings
    assert isinstance(native, dict)
    return native


def flat(**row: JsonValue) -> JsonObject:
    return only(FlatAdapter().read(row))


def passages_of(logged: JsonValue, **more: JsonValue) -> JsonValue:
    return flat(answer="A", contexts=logged, **more)["passages"]


def known(logged: JsonValue, **more: JsonValue) -> list[tuple[JsonValue, JsonValue, JsonValue]]:
    passages = passages_of(logged, **more)
    assert isinstance(passages, list)
    return [(one["id"], one["text"], one.get("score")) for one in passages if isinstance(one, dict)]


def detail_of(row: JsonObject) -> str:
    with pytest.raises(UnusablePayload) as raised:
        tuple(adapter_for(row, ()).read(row))
    assert raised.value.reason is RejectReason.WRONG_SHAPE
    return raised.value.detail


def test_the_native_form_comes_first_flat_rows_last_and_the_names_are_unique() -> None:
    names = [adapter.name for adapter in ADAPTERS]
    assert (names[0], names[-1]) == ("native", "flat")
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"schema": "gasp.interaction.v1", "answer": "A", "anything": 1}, "native"),
        ({"interaction_id": "1", "passages": [], "answer": "A", "model": "m"}, "native"),
        ({"interaction_id": "1", "passages": [], "answer": "A", "timestamp": 1}, "flat"),
        ({"schema": {"type": "struct"}, "answer": "A", "context": []}, "flat"),
        ({"schema": "other.v1", "answer": "A", "context": []}, "flat"),
        ({"query": "Q", "response": "A", "docs": []}, "flat"),
    ],
)
def test_a_row_goes_to_the_adapter_of_its_format(row: JsonObject, name: str) -> None:
    assert adapter_for(row, ()).name == name


def test_a_row_that_no_adapter_knows_is_of_the_wrong_shape() -> None:
    assert detail_of({"spans": []}) == "answer: missing, and no other known format; has spans"
    assert detail_of({}) == "answer: missing, and no other known format; has none of the known names, 0 fields"


@pytest.mark.parametrize("field", ["question", "answer", "interaction_id", "app", "occurred_at", "generator_model"])
def test_each_common_name_of_a_field_is_read(field: str) -> None:
    for name in getattr(FLAT_NAMES, field):
        row: JsonObject = {"answer": "A", "passages": []} if field != "answer" else {"passages": []}
        native = flat(**{**row, name: "value"})
        assert native[field] == "value", name
        assert native["metadata"] == {}, name


@pytest.mark.parametrize("name", FLAT_NAMES.passages)
def test_each_common_name_of_the_passages_is_read(name: str) -> None:
    row: JsonObject = {"answer": "A", name: ["p"]}
    assert flat(**row)["passages"] == [{"id": "ctx-1", "text": "p"}]


@pytest.mark.parametrize("text", ["text", "content", "page_content", "pageContent", "passage", "body"])
@pytest.mark.parametrize("identifier", ["id", "_id", "doc_id", "document_id", "chunk_id"])
def test_each_common_name_in_a_passage_is_read(text: str, identifier: str) -> None:
    for score in ("score", "similarity", "relevance_score"):
        for metadata in ("metadata", "meta"):
            logged: JsonObject = {text: "T", identifier: "d1", score: 0.5, metadata: {"page": 4}}
            assert passages_of([logged]) == [{"id": "d1", "text": "T", "score": 0.5, "metadata": {"page": 4}}]


def test_names_may_be_spelled_in_any_case() -> None:
    ids: JsonObject = {"traceId": "t", "app name": "b"}
    row: JsonObject = {"Query": "Q", "retrievedContexts": ["p"], "Generated-Answer": "A", **ids}
    native = flat(**row)
    assert (native["question"], native["answer"], native["interaction_id"], native["app"]) == ("Q", "A", "t", "b")
    assert native["passages"] == [{"id": "ctx-1", "text": "p"}]
    both = flat(Answer="second", answer="first", contexts=[])
    assert (both["answer"], both["metadata"]) == ("first", {"Answer": "second"})


def test_a_prompt_is_the_question_unless_it_holds_the_passages() -> None:
    native = flat(prompt="Q", answer="A", contexts=["Tea is hot."])
    assert (native["question"], native["metadata"]) == ("Q", {})
    native = flat(prompt="Tea is hot. Q", answer="A", contexts=["Tea is hot."])
    assert (native["question"], native["metadata"]) == ("", {"prompt": "Tea is hot. Q"})
    assert flat(prompt="P", question="Q", answer="A", contexts=[])["question"] == "Q"


def test_passages_that_dify_has_in_the_metadata_are_read() -> None:
    metadata: JsonObject = {"retriever_resources": [{"content": "T", "document_id": "d1", "score": 0.5}], "usage": {}}
    row: JsonObject = {"query": "Q", "answer": "A", "metadata": metadata}
    native = only(adapter_for(row, ()).read(row))
    assert native["passages"] == [{"id": "d1", "text": "T", "score": 0.5, "metadata": {}}]
    assert native["metadata"] == {"usage": {}}


@pytest.mark.parametrize("empty", [None, "", " \n", [], ["", None]])
def test_an_empty_name_does_not_hide_a_filled_one(empty: JsonValue) -> None:
    said: JsonValue = empty if isinstance(empty, str) else None
    native = flat(passages=empty, context=["p"], question=said, query="Q", answer=said, response="A")
    assert (native["question"], native["answer"], native["passages"]) == ("Q", "A", [{"id": "ctx-1", "text": "p"}])
    assert native["metadata"] == {}


@pytest.mark.parametrize("empty", [None, "", []])
def test_an_empty_list_says_that_nothing_was_found(empty: JsonValue) -> None:
    passages = flat(answer="A", contexts=empty)["passages"]
    assert passages in ([], [{"id": "ctx-1", "text": ""}])


def test_ids_and_scores_come_from_metadata_and_from_lists_beside_the_passages() -> None:
    assert known([{"id": None, "text": "T", "metadata": {"_id": "d1", "relevance_score": 0.5}}]) == [("d1", "T", 0.5)]
    beside: JsonObject = {"retrieved_context_ids": ["d1", 2], "retrieval_scores": [0.5, "high"]}
    assert known(["a", "b"], **beside) == [("d1", "a", 0.5), ("2", "b", None)]
    native = flat(answer="A", contexts=["a", "b"], retrieved_context_ids=["d1"])
    assert native["metadata"] == {"retrieved_context_ids": ["d1"]}


SILENT: list[tuple[JsonObject, str]] = [
    ({"question": "Q", "answer": "A"}, "a flat row; has question, answer"),
    ({"schema": "gasp.interaction.v1", "answer": "A"}, "gasp.interaction.v1; has answer"),
    ({"input": "Q", "output": "A", "Brellow": 1, "x" * 99: 2}, "a flat row; has input, output and 2 other fields"),
    ({"user_input": "Q", "response": "A", "reference": "R"}, "a Ragas sample; has user_input, response, reference"),
    ({"answer": "A", "sources": ["returns.md"]}, "a flat row; has answer, sources"),
    ({"answer": "A", "document": "returns.md"}, "a flat row; has answer, document"),
]


@pytest.mark.parametrize(("row", "told"), SILENT)
def test_a_row_without_a_field_for_passages_is_refused_with_what_it_has(row: JsonObject, told: str) -> None:
    rule = "passages: missing, where an empty list would say that nothing was found; looks like "
    assert detail_of(row) == rule + told


@pytest.mark.parametrize(
    "row",
    [
        {"Query": "Q", "Document": "Sale items go back.", "Answer": "A"},
        {"answer": "A", "sources": [{"text": "Sale items go back.", "url": "u"}]},
    ],
)
def test_what_may_be_a_title_is_evidence_where_it_is_a_text(row: JsonObject) -> None:
    passages = only(adapter_for(row, ()).read(row))["passages"]
    assert isinstance(passages, list)
    assert [one["text"] for one in passages if isinstance(one, dict)] == ["Sale items go back."]


def test_of_two_names_the_first_listed_is_read_and_the_other_kept_as_metadata() -> None:
    native = flat(query="second", question="first", output="last", answer="A", retrieval_context=["r"], context=["c"])
    assert (native["question"], native["answer"]) == ("first", "A")
    assert native["passages"] == [{"id": "ctx-1", "text": "r"}]
    assert native["metadata"] == {"query": "second", "output": "last", "context": ["c"]}


def test_null_is_the_same_as_absent() -> None:
    native = flat(question=None, query="Q", answer=None, response="A", id=None, trace_id="t", passages=None)
    assert (native["question"], native["answer"], native["interaction_id"]) == ("Q", "A", "t")
    assert (native["passages"], native["metadata"]) == ([], {})


def test_unknown_fields_are_kept_beside_the_metadata_that_was_logged() -> None:
    native = flat(answer="A", passages=[], metadata={"split": "dev", "n": 1}, split="test", labels=[])
    assert native["metadata"] == {"split": "dev", "n": 1, "row.split": "test", "labels": []}


def test_metadata_that_is_no_object_is_kept_under_its_own_name() -> None:
    assert flat(answer="A", passages=[], metadata="free text")["metadata"] == {"metadata": "free text"}


def test_a_name_that_is_taken_never_overwrites() -> None:
    assert merged({"a": 1, "row.a": 2}, {"a": 3}) == {"a": 1, "row.a": 2, "row.row.a": 3}


def test_passages_may_be_one_string_strings_objects_or_null() -> None:
    assert passages_of("only") == [{"id": "ctx-1", "text": "only"}]
    mixed = passages_of(["a", None, {"page_content": None, "content": "b", "source": "kb"}, {"text": None}])
    assert isinstance(mixed, list)
    assert [(one["id"], one["text"]) for one in mixed if isinstance(one, dict)] == [
        ("ctx-1", "a"),
        ("ctx-2", ""),
        ("ctx-3", "b"),
        ("ctx-4", ""),
    ]
    assert isinstance(mixed[2], dict)
    assert mixed[2]["metadata"] == {"source": "kb"}


def test_passage_ids_that_come_twice_stay_as_they_were_logged() -> None:
    passages = passages_of([{"id": 7, "text": "a"}, {"id": 7, "text": "b"}])
    assert isinstance(passages, list)
    assert [one["id"] for one in passages if isinstance(one, dict)] == ["7", "7"]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"answer": 5, "passages": []}, "answer: must be a string"),
        ({"answer": ["A", "B"], "passages": []}, "answer: must be a string"),
        ({"answer": {"text": "A"}, "passages": []}, "answer: must be a string"),
        ({"answer": "A", "documents": [], "input": [{"role": "user"}]}, "input: must be a string"),
        ({"answer": "A", "documents": 5}, "documents: must be a list or a string"),
        ({"answer": "A", "documents": ["a", 5]}, "documents.1: must be a string or an object"),
        ({"answer": "A", "documents": [["a"]]}, "documents.0: must be a string or an object"),
        ({"answer": "A", "documents": [{"id": "1"}]}, "documents.0.text: missing"),
        ({"answer": "A", "documents": [{"body": 1}]}, "documents.0.body: must be a string"),
        ({"answer": "A", "documents": ["a"] * 1001}, "documents: must hold at most 1000 passages"),
        ({"answer": "A", "schema": "gasp.interaction.v2"}, "schema: must be gasp.interaction.v1"),
        (
            {"schema": "gasp.interaction.v1"},
            "answer: missing; looks like gasp.interaction.v1; has none of the known names, 0 fields",
        ),
    ],
)
def test_a_row_that_cannot_be_read_names_the_place_and_the_rule(row: JsonObject, detail: str) -> None:
    assert detail_of(row) == detail


def test_a_useless_value_in_a_minor_field_is_kept_as_metadata() -> None:
    native = flat(
        answer="A", id=["x"], request_id="r", app={"name": "bot"}, model=5, contexts=[{"text": "t", "score": "high"}]
    )
    assert (native["interaction_id"], native["app"], native["generator_model"]) == ("r", None, None)
    assert native["metadata"] == {"id": ["x"], "app": {"name": "bot"}, "model": 5}
    assert native["passages"] == [{"id": "ctx-1", "text": "t", "score": None, "metadata": {"score": "high"}}]


@pytest.mark.parametrize(
    ("logged", "text"),
    [("a", "a"), (12, "12"), (12.0, "12"), (0, "0"), (" ", None), (True, None), (1.5, None), (1e40, None), ([], None)],
)
def test_an_id_is_text_or_exactly_an_integer(logged: JsonValue, text: str | None) -> None:
    assert as_identifier(logged) == text


@pytest.mark.parametrize(
    ("logged", "number"),
    [(1, 1.0), (0.5, 0.5), ("0.83", 0.83), ("nan", None), ("1e999", None), ("high", None), (True, None), ({}, None)],
)
def test_a_score_is_a_finite_number(logged: JsonValue, number: float | None) -> None:
    assert as_number(logged) == number


def test_native_rows_may_carry_unknown_fields() -> None:
    native = only(
        NativeAdapter().read(
            {"schema": "gasp.interaction.v1", "answer": "A", "passages": [], "query": "kept", "metadata": {"a": 1}}
        )
    )
    assert native["metadata"] == {"a": 1, "query": "kept"}
    assert native["question"] == ""
