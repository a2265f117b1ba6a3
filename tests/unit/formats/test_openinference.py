from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.traces.conventions import step_of_span
from schemas.traces.span import Span
from schemas.traces.step import Step, StepKind

KIND = "openinference.span.kind"
FOUND: list[JsonValue] = [
    {
        "id": "d-1",
        "metadata": {"source": "tea.md", "page": 2, "score": 0.5},
        "page_content": "Hot.",
        "type": "Document",
    },
    {"id": None, "metadata": {"_id": "d-2"}, "page_content": "Cold.", "type": "Document"},
]
FLATTENED: JsonObject = {
    "retrieval.documents.0.document.content": "Hot.",
    "retrieval.documents.0.document.metadata": '{"source": "tea.md", "page": 2, "score": 0.5}',
    "retrieval.documents.1.document.content": "Cold.",
    "retrieval.documents.1.document.metadata": '{"_id": "d-2"}',
}


def text(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def read(kind: str, attributes: JsonObject, resource: JsonObject | None = None) -> Step:
    return step_of_span(
        Span(
            trace_id="a" * 32,
            span_id="b" * 16,
            parent_id=None,
            name="made up",
            begun_ns=1,
            ended_ns=2,
            flags=None,
            has_failed=False,
            attributes={KIND: kind, **attributes},
            resource=resource or {},
            scope="",
        )
    )


def documents_of(step: Step) -> list[tuple[str | None, str | None, float | None]] | None:
    return None if step.documents is None else [(one.id, one.text, one.score) for one in step.documents]


@pytest.mark.parametrize(
    ("logged", "kind"),
    [
        ("CHAIN", StepKind.CHAIN),
        ("AGENT", StepKind.CHAIN),
        ("retriever", StepKind.RETRIEVER),
        ("RERANKER", StepKind.RERANKER),
        ("LLM", StepKind.LLM),
        ("EMBEDDING", StepKind.OTHER),
        ("TOOL", StepKind.OTHER),
        ("PROMPT", StepKind.OTHER),
        ("SOMETHING_NEW", StepKind.OTHER),
    ],
)
def test_a_span_has_a_kind(logged: str, kind: StepKind) -> None:
    assert read(logged, {}).kind is kind


@pytest.mark.parametrize(
    "value",
    [
        "Is tea hot?",
        text({"input": "Is tea hot?"}),
        text({"query_bundle": {"query_str": "Is tea hot?", "embedding": None}}),
        text({"data": {"retriever": {"query_embedding": [1.0]}, "prompt": {"query": "Is tea hot?"}}, "x": "{'y'}"}),
        text({"kwargs": {"question": "Is tea hot?"}, "args": []}),
    ],
)
def test_a_chain_was_asked_in_any_of_the_forms_that_programs_have(value: str) -> None:
    assert read("CHAIN", {"input.value": value, "input.mime_type": "application/json"}).question == "Is tea hot?"


@pytest.mark.parametrize(
    "value",
    [
        "Yes.",
        text({"input": "Is tea hot?", "context": FOUND, "answer": "Yes."}),
        text({"result": "Yes.", "source_documents": FOUND}),
        text({"raw": "Yes.", "pydantic": None, "json_dict": None, "tasks_output": [{"raw": "No."}], "token_usage": {}}),
        text({"reasoning": "Hmm.", "answer": "Yes."}),
        text({"response": "Yes.", "source_nodes": ["<NodeWithScore(node=TextNode(id_=d-1), score=0.5)>"]}),
    ],
)
def test_a_chain_answered_in_any_of_the_forms_that_programs_have(value: str) -> None:
    assert read("CHAIN", {"output.value": value}).answer == "Yes."


def test_what_python_printed_is_no_answer() -> None:
    printed = text({"answer_builder": {"answers": ["GeneratedAnswer(data='Yes.', query='Is tea hot?')"]}})
    assert read("CHAIN", {"output.value": printed}).answer is None


def test_a_chain_keeps_the_documents_beside_its_answer() -> None:
    output = text({"input": "Is tea hot?", "context": FOUND, "answer": "Yes."})
    assert documents_of(read("CHAIN", {"output.value": output})) == [("d-1", "Hot.", 0.5), ("d-2", "Cold.", None)]
    for handed_on in ("Yes.", text(FOUND), text({"input": "Is tea hot?", "context": FOUND})):
        assert read("CHAIN", {"output.value": handed_on}).documents is None


@pytest.mark.parametrize(
    "attributes",
    [
        {**FLATTENED, "output.value": text({"documents": FOUND})},
        {"output.value": text({"documents": FOUND})},
        {"output.value": text(FOUND)},
        {
            "retrieval.documents.0.document.content": "Hot.",
            "retrieval.documents.0.document.id": "d-1",
            "retrieval.documents.0.document.score": 0.5,
            "retrieval.documents.1.document.content": "Cold.",
            "retrieval.documents.1.document.metadata._id": "d-2",
            "output.value": text(["<NodeWithScore(node=TextNode(id_=d-1), score=0.83)>"]),
        },
        {
            "retrieval.documents": [
                {"document.content": "Hot.", "document.id": "d-1", "document.score": 0.5},
                {"document.content": "Cold.", "document.metadata": {"_id": "d-2"}},
            ],
        },
        {
            "retrieval": {
                "documents": [
                    {"document": {"content": "Hot.", "id": "d-1", "score": 0.5}},
                    {"document": {"content": "Cold.", "id": "d-2"}},
                ]
            }
        },
    ],
)
def test_a_retriever_found_documents_however_the_list_is_laid_out(attributes: JsonObject) -> None:
    assert documents_of(read("RETRIEVER", attributes)) == [("d-1", "Hot.", 0.5), ("d-2", "Cold.", None)]


def test_documents_come_in_the_order_of_their_numbers() -> None:
    attributes: JsonObject = {f"retrieval.documents.{n}.document.content": f"{n}" for n in (10, 9, 2, 0)}
    assert documents_of(read("RETRIEVER", attributes)) == [(None, str(n), None) for n in (0, 2, 9, 10)]


def test_without_an_output_the_place_of_a_document_names_it() -> None:
    assert documents_of(read("RETRIEVER", FLATTENED)) == [("tea.md#2", "Hot.", 0.5), ("d-2", "Cold.", None)]


def test_an_id_in_the_list_counts_more_than_one_in_the_output() -> None:
    attributes: JsonObject = {
        **FLATTENED,
        "retrieval.documents.0.document.id": "own",
        "output.value": text({"documents": FOUND}),
    }
    assert documents_of(read("RETRIEVER", attributes)) == [("own", "Hot.", 0.5), ("d-2", "Cold.", None)]


def test_what_the_span_had_no_room_for_stands_in_the_output() -> None:
    cut: JsonObject = {"retrieval.documents.0.document.content": "Hot.", "output.value": text(FOUND)}
    assert documents_of(read("RETRIEVER", cut)) == [("d-1", "Hot.", 0.5), ("d-2", "Cold.", None)]


@pytest.mark.parametrize("output", ["[]", '{"documents": []}'])
def test_a_retriever_may_have_found_nothing(output: str) -> None:
    assert read("RETRIEVER", {"output.value": output}).documents == ()


def test_a_retriever_that_only_prints_its_nodes_says_nothing_of_documents() -> None:
    printed = text(["<NodeWithScore(node=TextNode(id_=d-1), score=0.83)>"])
    step = read("RETRIEVER", {"output.value": printed, "input.value": text({"query_embedding": "<2-dim vector>"})})
    assert (step.documents, step.question) == (None, None)


def test_a_reranker_says_what_it_left_and_not_what_it_was_given() -> None:
    attributes: JsonObject = {
        "reranker.query": "tea",
        "reranker.input_documents.0.document.content": "Cold.",
        "reranker.output_documents.0.document.content": "Hot.",
        "reranker.output_documents.0.document.id": "d-1",
        "reranker.output_documents.0.document.score": 0.99,
    }
    step = read("RERANKER", attributes)
    assert (step.question, documents_of(step)) == ("tea", [("d-1", "Hot.", 0.99)])


def test_a_tool_that_gives_documents_retrieves() -> None:
    assert read("TOOL", {"output.value": text(FOUND)}).kind is StepKind.RETRIEVER
    assert read("TOOL", {"output.value": text({"temperature": 21})}).kind is StepKind.OTHER
    assert read("TOOL", FLATTENED).kind is StepKind.RETRIEVER


def test_a_model_was_told_and_said_messages() -> None:
    attributes: JsonObject = {
        "llm.model_name": "m-1",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Is tea hot?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Yes.",
        "output.value": '{"generations": []}',
    }
    step = read("LLM", attributes)
    assert (step.prompt, step.answer, step.model) == ("Is tea hot?", "Yes.", "m-1")


def test_the_parts_of_a_message_may_be_flattened() -> None:
    part = "llm.output_messages.0.message.contents"
    attributes: JsonObject = {
        "llm.output_messages.0.message.role": "assistant",
        f"{part}.0.message_content.type": "reasoning",
        f"{part}.0.message_content.text": "Hmm.",
        f"{part}.1.message_content.type": "text",
        f"{part}.1.message_content.text": "Yes.",
    }
    step = read("LLM", attributes)
    assert (step.answer, step.thoughts) == ("Yes.", "Hmm.")


def test_a_model_that_asks_for_a_tool_has_not_answered() -> None:
    attributes: JsonObject = {
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "I will look it up.",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
        "output.value": "I will look it up.",
    }
    assert read("LLM", attributes).answer is None


def test_a_model_that_completes_texts_has_prompts() -> None:
    step = read("LLM", {"llm.prompts": ["Is tea hot?"], "output.value": "Yes."})
    assert (step.prompt, step.answer) == ("Is tea hot?", "Yes.")


def test_the_evidence_may_be_a_variable_of_the_prompt() -> None:
    variables = text({"context_str": "Tea is hot.", "query_str": "Is tea hot?"})
    assert read("PROMPT", {"llm.prompt_template.variables": variables}).context == "Tea is hot."


def test_hidden_texts_are_not_there() -> None:
    step = read("CHAIN", {"input.value": "__REDACTED__", "output.value": "__REDACTED__"})
    assert (step.question, step.answer) == (None, None)


def test_the_project_names_the_app_and_else_the_service() -> None:
    both: JsonObject = {"openinference.project.name": "tea-room", "service.name": "svc"}
    assert read("CHAIN", {}, both).app == "tea-room"
    assert read("CHAIN", {}, {"service.name": "svc"}).app == "svc"
    assert read("CHAIN", {}, {"service.name": "unknown_service:python"}).app is None


def test_user_session_and_tags_are_metadata() -> None:
    attributes: JsonObject = {
        "user.id": "u-1",
        "session.id": "s-1",
        "tag.tags": ["prod"],
        "metadata": '{"tenant": "acme"}',
        "metadata.floor": 3,
    }
    known = {"user": "u-1", "session": "s-1", "tags": ["prod"], "tenant": "acme", "floor": 3}
    assert read("CHAIN", attributes).metadata == known
