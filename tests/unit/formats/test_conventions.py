"""The conventions that have inputs and outputs of a program in their attributes, and spans that follow several."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.traces.conventions import CONVENTIONS, LOG_CONVENTIONS, step_of_record, step_of_span
from schemas.traces.span import LogRecord
from schemas.traces.step import Step, StepKind
from tests.unit.formats.json_values import ANYTHING, ATTRIBUTE_WORDS, EVENT_WORDS, KIND_WORDS
from tests.unit.formats.spans import DOCUMENTS, FOUND, found, span, step, text

CONSTRUCTORS: list[JsonValue] = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"], "kwargs": document}
    for document in DOCUMENTS
]
MESSAGES: list[JsonValue] = [{"role": "user", "content": "Is it open?"}]


def entity(kind: str, given: JsonValue, gave: JsonValue, **more: JsonValue) -> Step:
    known = {name.replace("__", "."): value for name, value in more.items()}
    return step(
        {
            "traceloop.span.kind": kind,
            "traceloop.entity.name": "entity",
            "traceloop.entity.input": text(given),
            "traceloop.entity.output": text(gave),
            **known,
        }
    )


def observation(kind: str | None, given: str | None, gave: str | None, **more: JsonValue) -> Step:
    said: JsonObject = {
        "langfuse.observation.type": kind,
        "langfuse.observation.input": given,
        "langfuse.observation.output": gave,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return step({name: value for name, value in said.items() if value is not None}, resource={})


def test_conventions_have_names_of_their_own() -> None:
    names = [*(one.name for one in CONVENTIONS), *(one.name for one in LOG_CONVENTIONS)]
    assert len(set(names)) == len(names)


def test_a_workflow_of_openllmetry_is_a_chain() -> None:
    workflow = entity("workflow", {"args": ["Is it open?"], "kwargs": {}}, "Yes.")
    assert (workflow.kind, workflow.question, workflow.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")


def test_options_of_langchain_are_no_question_and_its_context_no_answer() -> None:
    options: JsonValue = {"name": "RunnableLambda", "run_type": None}
    mapped = entity("task", {"inputs": [], "tags": [], "kwargs": options}, {"outputs": {"context": "Open until 6."}})
    assert (mapped.kind, mapped.question, mapped.answer) == (StepKind.CHAIN, None, None)


def test_a_retriever_of_langchain_in_openllmetry() -> None:
    retriever = entity(
        "task",
        {"query": "Is it open?", "tags": ["seq:step:2"], "kwargs": {"name": "R"}},
        {"documents": [{"page_content": "Open until 6.", "metadata": {"source": "hours.md", "page": 3}}], "count": 1},
        gen_ai__operation__name="vector_db_retrieve",
    )
    assert (retriever.kind, retriever.question) == (StepKind.RETRIEVER, "Is it open?")
    assert found(retriever) == [("hours.md#3", "Open until 6.", None)]


def test_a_task_that_gives_documents_retrieves() -> None:
    retriever = entity(
        "task", {"inputs": {"input": "Is it open?"}, "tags": []}, {"outputs": CONSTRUCTORS, "kwargs": {}}
    )
    assert (retriever.kind, found(retriever)) == (StepKind.RETRIEVER, FOUND)
    nodes: JsonValue = [{"node": {"id_": "d-1", "text": "Open until 6."}, "score": 0.7, "class_name": "NodeWithScore"}]
    assert found(entity("task", {"str_or_query_bundle": "Is it open?"}, nodes)) == FOUND[:1]


def test_llamaindex_in_openllmetry_writes_nodes_as_json_in_strings_and_models_as_tasks() -> None:
    node: JsonValue = {"node": {"id_": "d-1", "text": "Open until 6.", "class_name": "TextNode"}, "score": 0.7}
    retriever = entity("task", {"str_or_query_bundle": {"query_str": "Is it open?"}}, [text(node)])
    assert (retriever.kind, retriever.question) == (StepKind.RETRIEVER, "Is it open?")
    assert found(retriever) == FOUND[:1]
    said = text([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}], "finish_reason": ""}])
    model = entity("task", {"kwds": {"context_str": "Open until 6."}}, "Yes.", gen_ai__output__messages=said)
    assert (model.kind, model.answer) == (StepKind.LLM, "Yes.")


def test_a_task_that_is_given_documents_and_gives_documents_ranks() -> None:
    ranked = entity("task", {"args": ["Is it open?", DOCUMENTS], "kwargs": {}}, DOCUMENTS[:1])
    assert (ranked.kind, found(ranked)) == (StepKind.RERANKER, FOUND[:1])


def test_a_model_in_openllmetry_speaks_by_the_convention_of_opentelemetry() -> None:
    chat = step(
        {
            "traceloop.entity.name": "ChatOpenAI",
            "traceloop.association.properties.user_id": "u-1",
            "traceloop.association.properties.tenant": "acme",
            "traceloop.association.properties.ls_provider": "openai",
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "m",
            "gen_ai.input.messages": text([{"role": "user", "parts": [{"type": "text", "content": "Is it open?"}]}]),
            "gen_ai.output.messages": text([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]),
        }
    )
    assert (chat.kind, chat.prompt, chat.answer, chat.model) == (StepKind.LLM, "Is it open?", "Yes.", "m")
    assert chat.metadata == {"user": "u-1", "tenant": "acme"}


def run_of_langsmith(kind: str, given: JsonValue, gave: JsonValue, parent: str | None = "b" * 16, **more: str) -> Step:
    said = {"langsmith.span.kind": kind, "gen_ai.prompt": text(given), "gen_ai.completion": text(gave)}
    facts = {name.replace("__", "."): value for name, value in more.items()}
    return step(
        {"langsmith.trace.session_name": "support", "gen_ai.system": "langchain", **said, **facts}, parent=parent
    )


def test_runs_of_langsmith_are_read_from_its_spans() -> None:
    retriever = run_of_langsmith("retriever", {"query": "Is it open?"}, {"documents": DOCUMENTS})
    assert (retriever.kind, retriever.question, retriever.app) == (StepKind.RETRIEVER, "Is it open?", "support")
    assert found(retriever) == FOUND
    message: JsonValue = {"lc": 1, "type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "Yes."}}
    said = run_of_langsmith(
        "llm",
        {"messages": [[{"role": "user", "content": "Is it open?"}]]},
        {"generations": [[{"text": "Yes.", "type": "ChatGeneration", "message": message}]]},
        langsmith__metadata__ls_model_name="m",
    )
    assert (said.kind, said.answer, said.model) == (StepKind.LLM, "Yes.", "m")
    root = run_of_langsmith(
        "chain",
        {"input": "Is it open?"},
        {"input": "Is it open?", "answer": "Yes."},
        parent=None,
        langsmith__metadata__user_id="u-1",
        langsmith__metadata__LANGSMITH_PROJECT="support",
        langsmith__span__tags="a, b",
    )
    assert (root.kind, root.question, root.answer, root.is_root) == (StepKind.CHAIN, "Is it open?", "Yes.", True)
    assert root.metadata == {"user": "u-1", "tags": ["a", "b"]}
    assert run_of_langsmith("prompt", {"input": "Is it open?"}, {"output": "Is it open?"}).kind is StepKind.OTHER


def test_spans_that_people_write_for_langsmith_are_read_by_what_else_they_say() -> None:
    said = step(
        {
            "langsmith.span.kind": "llm",
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": text([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]),
        }
    )
    assert (said.kind, said.answer) == (StepKind.LLM, "Yes.")
    chain = step({"langsmith.span.kind": "chain", "input.value": "Is it open?", "output.value": "Yes."})
    assert (chain.question, chain.answer) == ("Is it open?", "Yes.")


def test_hits_of_a_vector_store_are_documents() -> None:
    one: JsonObject = {"id": "d-1", "document": "Open until 6.", "distance": 0.1}
    other: JsonObject = {"id": "d-2", "score": 0.2, "metadata": '{"text": "Closed on Sundays."}'}
    hits: tuple[tuple[str, JsonObject], ...] = tuple(
        ("db.query.result", {f"db.query.result.{name}": value for name, value in hit.items()}) for hit in (one, other)
    )
    query = step({"db.system": "chroma", "db.operation": "query"}, events=hits)
    assert query.kind is StepKind.RETRIEVER
    assert found(query) == [("d-1", "Open until 6.", None), ("d-2", "Closed on Sundays.", 0.2)]
    assert step({"db.system": "pinecone", "db.vector.query.result_count": 0}).documents == ()
    assert step({"db.system": "chroma", "db.operation": "add"}).kind is StepKind.OTHER


def test_what_chroma_retrieveris_unknown_where_each_query_has_its_first_hit_only() -> None:
    hit: JsonObject = {"db.query.result.id": "d-1", "db.query.result.document": "Open until 6."}
    wanted: JsonObject = {"db.system": "chroma", "db.chroma.query.texts_count": 1, "db.chroma.query.n_results": 3}
    one = step(wanted, events=(("db.query.result", hit),))
    assert (one.kind, one.documents) == (StepKind.RETRIEVER, None)
    two = step(wanted, events=(("db.query.result", hit), ("db.query.result", {**hit, "db.query.result.id": "d-2"})))
    assert [document.id for document in two.documents or ()] == ["d-1", "d-2"]
    alone = step({**wanted, "db.chroma.query.n_results": 1}, events=(("db.query.result", hit),))
    assert found(alone) == [("d-1", "Open until 6.", None)]


@pytest.mark.parametrize("gave", ["Yes.", text({"answer": "Yes.", "context": DOCUMENTS}), text({"content": "Yes."})])
@pytest.mark.parametrize("asked", ["Is it open?", text({"input": "Is it open?"}), text({"args": ["Is it open?"]})])
def test_an_observation_of_langfuse_is_text_or_json_in_text(asked: str, gave: str) -> None:
    chain = observation("chain", asked, gave)
    assert (chain.kind, chain.question, chain.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")


def test_a_retriever_and_a_generation_of_langfuse() -> None:
    retriever = observation("retriever", "Is it open?", text(DOCUMENTS))
    assert (retriever.kind, retriever.question, found(retriever)) == (StepKind.RETRIEVER, "Is it open?", FOUND)
    answer = text({"role": "assistant", "content": "Yes."})
    chat = observation("generation", text(MESSAGES), answer, langfuse__observation__model__name="m")
    assert (chat.kind, chat.prompt, chat.answer, chat.model) == (StepKind.LLM, "Is it open?", "Yes.", "m")
    assert chat.question is None


def test_a_span_of_langfuse_that_gives_documents_retrieves() -> None:
    assert found(observation("span", text({"args": ["Is it open?"], "kwargs": {}}), text(DOCUMENTS))) == FOUND
    assert observation("tool", "{}", "done").kind is StepKind.OTHER


def test_langfuse_marks_the_root_also_where_it_has_a_parent() -> None:
    assert observation("chain", "Is it open?", "Yes.").is_root is False
    for mark in ("langfuse__internal__is_app_root", "langfuse__internal__as_root"):
        assert observation("chain", "Is it open?", "Yes.", **{mark: True}).is_root is True


def test_what_is_said_of_a_whole_trace_counts_at_its_root_alone() -> None:
    whole: dict[str, JsonValue] = {"langfuse__trace__input": "Is it open?", "langfuse__trace__output": "Yes."}
    root = observation("span", text({"a": "x", "b": "y"}), None, langfuse__internal__is_app_root=True, **whole)
    assert (root.question, root.answer) == ("Is it open?", "Yes.")
    inner = observation("generation", None, "Let me see.", **whole)
    assert (inner.answer, inner.question) == ("Let me see.", None)


def test_users_sessions_and_tags_of_langfuse_are_metadata_and_its_environment_the_app() -> None:
    root = observation(
        "span",
        "Is it open?",
        "Yes.",
        user__id="u-1",
        session__id="s-1",
        langfuse__trace__tags=["prod"],
        langfuse__trace__metadata__tenant="acme",
        langfuse__environment="staging",
    )
    assert root.metadata == {"tenant": "acme", "user": "u-1", "session": "s-1", "tags": ["prod"]}
    assert root.app == "staging"
    assert observation("span", "Q", "A", langfuse__environment="default").app is None


def test_a_foreign_span_that_langfuse_exports_is_what_its_own_convention_says() -> None:
    chat = step(
        {
            "langfuse.environment": "staging",
            "langfuse.internal.is_app_root": True,
            "session.id": "s-1",
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": text([{"role": "user", "parts": [{"type": "text", "content": "Is it open?"}]}]),
            "gen_ai.output.messages": text([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]),
        }
    )
    assert (chat.kind, chat.prompt, chat.answer) == (StepKind.LLM, "Is it open?", "Yes.")
    assert (chat.is_root, chat.app, chat.metadata) == (True, "desk", {"session": "s-1"})
    kept = step({"openinference.span.kind": "RETRIEVER", "langfuse.environment": "staging"})
    assert kept.kind is StepKind.RETRIEVER


def test_a_record_of_trulens() -> None:
    common: JsonObject = {"ai.observability.app_name": "desk-2", "ai.observability.record_id": "r-1"}
    root = step(
        {
            **common,
            "ai.observability.span_type": "record_root",
            "ai.observability.record_root.input": "Is it open?",
            "ai.observability.record_root.output": "Yes.",
        }
    )
    assert (root.kind, root.question, root.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")
    assert (root.app, root.metadata) == ("desk-2", {"record_id": "r-1"})
    texts: list[JsonValue] = ["Open until 6.", "Closed on Sundays."]
    retrieval = step(
        {
            **common,
            "ai.observability.span_type": "SpanType.RETRIEVAL",
            "ai.observability.retrieval.query_text": "Is it open?",
            "ai.observability.retrieval.retrieved_contexts": texts,
            "gen_ai.retrieval.documents": texts,
        }
    )
    assert (retrieval.kind, retrieval.question) == (StepKind.RETRIEVER, "Is it open?")
    assert found(retrieval) == [(None, "Open until 6.", None), (None, "Closed on Sundays.", None)]
    generation = step(
        {
            **common,
            "ai.observability.span_type": "generation",
            "ai.observability.call.return": "Yes.",
            "ai.observability.cost.model": "m",
        }
    )
    assert (generation.kind, generation.answer, generation.model) == (StepKind.LLM, "Yes.", "m")
    ranked = step(
        {
            **common,
            "ai.observability.span_type": "reranking",
            "ai.observability.reranking.output_context_texts": texts[:1],
            "ai.observability.reranking.output_context_scores": [0.9],
        }
    )
    assert (ranked.kind, found(ranked)) == (StepKind.RERANKER, [(None, "Open until 6.", 0.9)])
    assert step({**common, "ai.observability.span_type": "eval_root"}).kind is StepKind.OTHER


def test_attributes_of_mlflow_are_json_in_strings() -> None:
    chain = step(
        {
            "mlflow.spanType": '"CHAIN"',
            "mlflow.spanInputs": text({"question": "Is it open?"}),
            "mlflow.spanOutputs": '"Yes."',
        }
    )
    assert (chain.kind, chain.question, chain.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")
    retriever = step(
        {
            "mlflow.spanType": '"RETRIEVER"',
            "mlflow.spanInputs": text({"query": "Is it open?"}),
            "mlflow.spanOutputs": text(DOCUMENTS),
        }
    )
    assert (retriever.kind, retriever.question, found(retriever)) == (StepKind.RETRIEVER, "Is it open?", FOUND)
    chat = step(
        {
            "mlflow.spanType": '"CHAT_MODEL"',
            "mlflow.spanInputs": text({"messages": MESSAGES}),
            "mlflow.spanOutputs": text(
                {"choices": [{"message": {"role": "assistant", "content": "Yes."}}], "model": "m"}
            ),
        }
    )
    assert (chat.kind, chat.prompt, chat.answer, chat.model) == (StepKind.LLM, "Is it open?", "Yes.", "m")
    untyped: JsonObject = {"mlflow.spanType": '"UNKNOWN"', "mlflow.spanOutputs": text(DOCUMENTS)}
    assert step(untyped).kind is StepKind.RETRIEVER


def test_a_call_of_vercels_sdk_with_its_turns_and_tools() -> None:
    prompt: JsonValue = {"system": "Be brief.", "messages": MESSAGES}
    call = step({"ai.operationId": "ai.generateText", "ai.prompt": text(prompt), "ai.response.text": "Yes."})
    assert (call.kind, call.question, call.answer) == (StepKind.CHAIN, "Is it open?", "Yes.")
    simple = step({"ai.operationId": "ai.streamText", "ai.prompt": text({"prompt": "Is it open?"})})
    assert simple.question == "Is it open?"
    turn: JsonObject = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": text([{"role": "user", "content": [{"type": "text", "text": "Is it open?"}]}]),
        "ai.response.text": "Yes.",
        "ai.response.reasoning": "So…",
        "ai.model.id": "m",
        "gen_ai.system": "openai.chat",
        "ai.telemetry.metadata.userId": "u-1",
    }
    said = step(turn)
    assert (said.kind, said.prompt, said.answer, said.thoughts) == (StepKind.LLM, "Is it open?", "Yes.", "So…")
    assert (said.model, said.metadata) == ("m", {"user": "u-1"})
    assert step({**turn, "ai.response.toolCalls": text([{"toolName": "find"}])}).answer is None
    tool: JsonObject = {"ai.operationId": "ai.toolCall", "ai.toolCall.args": text({"question": "Is it open?"})}
    search = step({**tool, "ai.toolCall.result": text([{"id": "d-1", "text": "Open until 6.", "score": 0.7}])})
    assert (search.kind, search.question, found(search)) == (StepKind.RETRIEVER, "Is it open?", FOUND[:1])
    assert step({**tool, "ai.toolCall.result": text({"temperature": 7})}).kind is StepKind.OTHER


def test_conventions_that_see_different_kinds_do_not_mix_what_was_said() -> None:
    chain = step(
        {
            "langfuse.observation.type": "agent",
            "langfuse.observation.input": "Is it open?",
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "m",
            "gen_ai.output.messages": text([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]),
        }
    )
    assert (chain.kind, chain.question, chain.answer, chain.model) == (StepKind.CHAIN, "Is it open?", None, "m")


KINDS = st.sampled_from(KIND_WORDS.split())
ATTRIBUTES = st.dictionaries(st.sampled_from(ATTRIBUTE_WORDS.split()), KINDS | ANYTHING, max_size=8)
EVENTS = st.sampled_from(EVENT_WORDS.split())


@given(ATTRIBUTES, st.lists(st.tuples(EVENTS, ATTRIBUTES), max_size=3), ATTRIBUTES)
def test_any_span_is_read(attributes: JsonObject, events: list[tuple[str, JsonObject]], resource: JsonObject) -> None:
    read = step_of_span(span(attributes, events=tuple(events), resource=resource))
    assert Step.from_json(read.to_json()) == read


@given(EVENTS, ANYTHING, ATTRIBUTES)
def test_any_record_is_read(name: str, body: JsonValue, attributes: JsonObject) -> None:
    read = step_of_record(LogRecord("c" * 32, "a" * 16, name, None, body, attributes, attributes, "scope"))
    assert read is None or Step.from_json(read.to_json()) == read
