from __future__ import annotations

import orjson
import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.langfuse import LangfuseAdapter
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Document, Step, StepKind

TRACE = "t-1"
AT = "2026-03-01T10:15:00.100Z"
DOCUMENTS: JsonValue = [{"id": "tea-1", "text": "Tea is brewed at 90 °C.", "score": 0.9}]
READ = (Document(id="tea-1", text="Tea is brewed at 90 °C.", score=0.9),)


def event(kind: str, **body: JsonValue) -> JsonObject:
    return {"id": "e", "type": kind, "timestamp": AT, "body": body}


def observation(**more: JsonValue) -> JsonObject:
    return {
        "id": "o-1",
        "trace_id": TRACE,
        "project_id": "p",
        "environment": "prod",
        "type": "SPAN",
        "parent_observation_id": None,
        "name": "rag",
        "start_time": "2026-03-01 10:15:00.000000",
        "end_time": "2026-03-01 10:15:02.000000",
        "input": "How hot is tea?",
        "output": "Hot.",
        "metadata": {},
        "user_id": "u-1",
        "session_id": "",
        "tags": ["prod"],
        "provided_model_name": "",
        **more,
    }


def trace(**more: JsonValue) -> JsonObject:
    marks: JsonObject = {"bookmarked": False, "public": False}
    return {"id": TRACE, "timestamp": AT, "input": "How hot is tea?", "output": "Hot.", **marks, **more}


def pieces(row: JsonObject) -> list[Piece]:
    assert adapter_for(row, ()).name == "langfuse"
    found = list(LangfuseAdapter().read(row))
    return [one for one in found if isinstance(one, Piece)]


def step(row: JsonObject) -> Step:
    (piece,) = pieces(row)
    (one,) = piece.steps
    return one


def test_a_batch_says_of_its_trace_what_its_events_say_and_never_that_it_is_over() -> None:
    batch: JsonObject = {
        "batch": [
            event("trace-create", id=TRACE, input="How hot is tea?", userId="u-1", sessionId="s-1", tags=["prod"]),
            event("span-create", id="s", traceId=TRACE, name="search", input="hot tea", startTime=AT),
            event("span-update", id="s", traceId=TRACE, output=DOCUMENTS, endTime=AT),
            event("generation-create", id="g", traceId=TRACE, model="tea-1b", input=[{"role": "user", "content": "Q"}]),
            event("generation-update", id="g", traceId=TRACE, output={"role": "assistant", "content": "Hot."}),
            event("trace-create", id=TRACE, output="Hot."),
            event("score-create", id="x", traceId=TRACE, value=1),
            event("sdk-log", log="…"),
        ],
        "metadata": {"sdk_name": "python"},
    }
    (piece,) = pieces(batch)
    assert (piece.trace, piece.ends) == (TraceKey("langfuse", TRACE), False)
    assert [one.id for one in piece.steps] == [TRACE, "s", "s", "g", "g", TRACE]
    root, created, updated, _, said, ended = piece.steps
    assert (root.is_root, root.kind, root.question) == (True, StepKind.CHAIN, "How hot is tea?")
    assert root.metadata == {"user": "u-1", "session": "s-1", "tags": ["prod"]}
    assert (created.parent, created.kind, updated.parent) == (TRACE, StepKind.CHAIN, None)
    assert (updated.kind, updated.documents, updated.order > created.order) == (StepKind.RETRIEVER, READ, True)
    assert (said.kind, said.answer) == (StepKind.LLM, "Hot.")
    assert (ended.answer, ended.question, ended.has_ended) == ("Hot.", None, False)


def test_an_event_may_come_alone() -> None:
    found = step(event("generation-create", id="g", traceId=TRACE, parentObservationId="s", model="tea-1b"))
    assert (found.parent, found.model) == ("s", "tea-1b")


@pytest.mark.parametrize(
    ("kind", "body", "known"),
    [
        ("retriever-create", {}, StepKind.RETRIEVER),
        ("agent-create", {}, StepKind.CHAIN),
        ("tool-create", {}, StepKind.OTHER),
        ("tool-create", {"output": DOCUMENTS}, StepKind.RETRIEVER),
        ("event-create", {"output": DOCUMENTS, "name": "rerank"}, StepKind.RERANKER),
        ("span-create", {"name": "retrieval"}, StepKind.RETRIEVER),
        ("span-update", {"output": "Tea."}, None),
        ("observation-create", {"type": "GENERATION"}, StepKind.LLM),
        ("observation-update", {"type": "SPAN"}, None),
    ],
)
def test_an_observation_is_what_its_type_or_its_output_says(
    kind: str, body: JsonObject, known: StepKind | None
) -> None:
    assert step(event(kind, id="o", traceId=TRACE, **body)).kind is known


def test_texts_that_a_span_found_come_with_its_end_and_its_name_with_the_start() -> None:
    assert step(event("span-create", id="o", traceId=TRACE, name="document_retrieval")).kind is StepKind.RETRIEVER
    assert step(event("span-update", id="o", traceId=TRACE, output=["Tea."])).documents == (Document(text="Tea."),)


def test_a_trace_without_contents_only_connects_its_steps() -> None:
    assert step(event("trace-create", id=TRACE, name="rag")).kind is None


def test_an_observation_without_a_trace_is_one() -> None:
    (piece,) = pieces(event("generation-create", id="g", traceId=None))
    assert (piece.trace.id, piece.steps[0].is_root, piece.steps[0].parent) == ("g", True, None)


def test_an_error_is_told() -> None:
    failed = step(event("span-update", id="s", traceId=TRACE, level="ERROR", statusMessage="…"))
    assert (failed.has_failed, step(event("span-update", id="s", traceId=TRACE)).has_failed) == (True, None)


def test_the_uppermost_row_of_an_export_is_the_root_and_ends_the_trace() -> None:
    (piece,) = pieces(observation())
    (root,) = piece.steps
    assert piece.ends
    assert (root.question, root.answer, root.parent) == ("How hot is tea?", "Hot.", TRACE)
    assert root.metadata == {"user": "u-1", "tags": ["prod"], "project_id": "p", "environment": "prod"}
    assert not pieces(observation(end_time=None))[0].ends


def test_a_row_beside_others_is_no_root() -> None:
    written = orjson.dumps(DOCUMENTS).decode()
    beside = step(observation(output=written, name="search"))
    assert (beside.is_root, beside.kind, beside.documents) == (False, StepKind.RETRIEVER, READ)
    generated = step(observation(type="GENERATION", provided_model_name="tea-1b"))
    assert (generated.is_root, generated.model) == (False, "tea-1b")


def test_rows_of_the_api_have_other_names() -> None:
    row: JsonObject = {
        "id": "o-2",
        "traceId": TRACE,
        "type": "RETRIEVER",
        "parentObservationId": "o-1",
        "startTime": AT,
        "endTime": AT,
        "output": DOCUMENTS,
    }
    found = step(row)
    assert (found.parent, found.documents, found.has_ended) == ("o-1", READ, True)


def test_an_empty_text_in_an_export_says_nothing() -> None:
    empty = step(observation(input="", output=""))
    assert (empty.question, empty.answer) == (None, None)


def test_a_trace_as_a_row_is_the_step_above_its_observations() -> None:
    assert step(trace()).answer == "Hot."
    (piece,) = pieces(trace(observations=[observation(), observation(id="o-2", parent_observation_id="o-1"), "o-3"]))
    assert [(one.id, one.parent) for one in piece.steps] == [(TRACE, None), ("o-1", TRACE), ("o-2", "o-1")]


def test_a_batch_of_scores_is_nothing_to_audit() -> None:
    assert tuple(LangfuseAdapter().read({"batch": [event("score-create", id="x")]})) == (SkipReason.NOT_RAG,)


@pytest.mark.parametrize("kind", ["trace-create", "span-create"])
def test_an_event_without_an_id_is_refused_by_name(kind: str) -> None:
    with pytest.raises(UnusablePayload) as refused:
        tuple(LangfuseAdapter().read(event(kind, traceId=TRACE)))
    assert refused.value.detail == "langfuse.id: missing"


@pytest.mark.parametrize(
    "row",
    [
        {"batch": []},
        {"batch": [{"question": "Q", "answer": "A"}]},
        {"type": "trace-create", "answer": "A"},
        {"type": "SPAN", "trace_id": "1", "answer": "A"},
        {"id": "1", "timestamp": 1, "input": "Q", "output": "A"},
        {"id": "1", "timestamp": 1, "input": "Q", "output": "A", "observations": "none", "documents": []},
    ],
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not LangfuseAdapter().matches(row, ())
