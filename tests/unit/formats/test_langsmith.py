from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest
from pydantic import JsonValue

from schemas.adapters import adapter_for
from schemas.adapters.langsmith import LangSmithAdapter
from schemas.decoding import Rejected, Skipped, decode_payload
from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Document, Step, StepKind

ROOT = "11111111-2222-7333-8444-555555555555"
CHILD = "aaaaaaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee"
ROOT_PLACE = f"20260301T101500000000Z{ROOT}"
CHILD_PLACE = f"{ROOT_PLACE}.20260301T101500100000Z{CHILD}"
DOCUMENTS: JsonValue = [
    {"id": "tea-1", "metadata": {"source": "tea.md", "relevance_score": 0.9}, "page_content": "Tea is brewed at 90 °C."}
]


def run(**more: JsonValue) -> JsonObject:
    return {
        "id": ROOT,
        "trace_id": ROOT,
        "dotted_order": ROOT_PLACE,
        "name": "tea_chain",
        "run_type": "chain",
        "session_name": "tea-bot",
        "start_time": "2026-03-01T10:15:00.000000+00:00",
        "inputs": {"input": "How hot is tea?"},
        "outputs": {},
        "extra": {"metadata": {"user_id": "u-1", "LANGSMITH_PROJECT": "tea-bot", "ls_provider": "x"}},
        "tags": ["prod"],
        **more,
    }


def retrieval(**more: JsonValue) -> JsonObject:
    return {
        **run(),
        "id": CHILD,
        "parent_run_id": ROOT,
        "dotted_order": CHILD_PLACE,
        "name": "VectorStoreRetriever",
        "run_type": "retriever",
        "inputs": {"query": "How hot is tea?"},
        "outputs": {"documents": DOCUMENTS},
        "end_time": "2026-03-01T10:15:00.200000+00:00",
        **more,
    }


def piece(row: JsonObject) -> Piece:
    assert adapter_for(row, ()).name == "langsmith"
    (found,) = LangSmithAdapter().read(row)
    assert isinstance(found, Piece)
    return found


def step(row: JsonObject) -> Step:
    (one,) = piece(row).steps
    return one


def test_a_batch_is_a_piece_of_its_trace_and_ends_with_the_end_of_the_root() -> None:
    started = piece({"post": [run(), retrieval()], "patch": []})
    ended = piece({"post": [], "patch": [run(end_time="2026-03-01T10:15:02+00:00", outputs={"answer": "Hot."})]})
    assert started.trace == ended.trace == TraceKey("langsmith", ROOT)
    assert [one.id for one in started.steps] == [ROOT, CHILD]
    assert (started.app, started.ends, ended.ends) == ("tea-bot", False, True)


def test_the_start_of_a_run_gives_nothing_yet() -> None:
    begun = step(run())
    assert begun.is_root
    assert begun.kind is StepKind.CHAIN
    assert (begun.question, begun.answer, begun.documents, begun.has_ended) == ("How hot is tea?", None, None, False)
    assert begun.metadata == {"user": "u-1", "tags": ["prod"]}


def test_an_end_counts_before_a_start_whatever_their_order() -> None:
    assert step(run(end_time="2026-03-01T10:15:02+00:00")).order > step(run(start_time="2027-01-01T00:00:00Z")).order


def test_a_retriever_gives_documents_and_lies_below_its_parent() -> None:
    found = step(retrieval())
    assert (found.parent, found.is_root, found.kind, found.begun_ns) == (
        ROOT,
        False,
        StepKind.RETRIEVER,
        int(datetime(2026, 3, 1, 10, 15, tzinfo=UTC).timestamp()) * 10**9,
    )
    assert found.documents == (
        Document(
            id="tea-1",
            text="Tea is brewed at 90 °C.",
            score=0.9,
            metadata={"source": "tea.md", "relevance_score": 0.9},
        ),
    )


def test_a_patch_that_only_says_what_changed_is_read_by_its_place() -> None:
    changed = step(
        {"id": CHILD, "dotted_order": CHILD_PLACE, "outputs": {"documents": DOCUMENTS}, "end_time": 1772360100200}
    )
    assert (changed.parent, changed.is_root, changed.kind, changed.has_ended) == (ROOT, False, StepKind.RETRIEVER, True)
    assert piece({"id": CHILD, "dotted_order": CHILD_PLACE, "outputs": {}}).trace.id == ROOT


def test_a_model_says_its_name_and_its_answer() -> None:
    message: JsonObject = {"lc": 1, "type": "constructor", "id": ["m", "AIMessage"], "kwargs": {"content": "Hot."}}
    said = step(
        retrieval(
            run_type="llm",
            inputs={"messages": [[{"type": "human", "content": "How hot?"}]]},
            outputs={"generations": [[{"text": "Hot.", "type": "ChatGeneration", "message": message}]]},
            extra={"metadata": {"ls_model_name": "tea-1b"}},
        )
    )
    assert (said.kind, said.model, said.prompt, said.answer) == (StepKind.LLM, "tea-1b", "How hot?", "Hot.")


def test_a_function_that_gives_documents_has_retrieved_whatever_type_it_was_given() -> None:
    assert step(retrieval(run_type="chain", outputs={"output": DOCUMENTS})).kind is StepKind.RETRIEVER
    assert step(retrieval(run_type="tool", name="search", outputs={"output": DOCUMENTS})).kind is StepKind.RETRIEVER
    assert step(retrieval(run_type="chain", name="retrieve", outputs={"output": ["Tea."]})).documents == (
        Document(text="Tea."),
    )
    assert step(retrieval(run_type="chain", outputs={"context": DOCUMENTS, "answer": "A"})).kind is StepKind.CHAIN


def test_a_root_that_gives_its_documents_with_the_answer_has_both() -> None:
    ended = step(run(end_time="2026-03-01T10:15:02Z", outputs={"answer": "Hot.", "context": DOCUMENTS}))
    assert ended.answer == "Hot."
    assert [document.id for document in ended.documents or ()] == ["tea-1"]


def test_a_row_of_the_bulk_export_has_its_contents_as_text() -> None:
    row = retrieval()
    row |= {name: orjson.dumps(row[name]).decode() for name in ("inputs", "outputs", "extra")}
    assert [document.id for document in step(row).documents or ()] == ["tea-1"]


def test_a_run_that_failed_says_so_when_it_is_over() -> None:
    assert step(run(end_time="2026-03-01T10:15:02Z", error="ValueError()")).has_failed
    assert step(run(error=None)).has_failed is None


def test_child_runs_in_a_run_are_steps_of_its_trace() -> None:
    tree = run(end_time="2026-03-01T10:15:02Z", child_runs=[retrieval(child_runs=[])])
    assert [one.id for one in piece(tree).steps] == [ROOT, CHILD]
    assert piece({"runs": [run(), retrieval()], "cursors": {"next": None}}).steps[1].id == CHILD


def test_runs_of_several_traces_are_a_piece_each() -> None:
    other = ROOT.replace("1", "9")
    batch: JsonObject = {"post": [run(), run(id=other, trace_id=other)]}
    findings = tuple(LangSmithAdapter().read(batch))
    assert [found.trace.id for found in findings if isinstance(found, Piece)] == [ROOT, other]


def test_a_batch_without_runs_is_nothing_to_audit() -> None:
    assert tuple(LangSmithAdapter().read({"post": [], "patch": []})) == (SkipReason.NOT_RAG,)


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ({"id": CHILD, "run_type": "chain", "parent_run_id": ROOT}, "langsmith.trace_id: missing"),
        (
            retrieval(outputs=None, outputs_s3_urls={"ROOT": {}}),
            "langsmith.outputs: kept in another store; export the runs with their contents",
        ),
    ],
)
def test_a_run_that_cannot_be_read_is_refused_by_name(row: JsonObject, detail: str) -> None:
    with pytest.raises(UnusablePayload) as refused:
        tuple(LangSmithAdapter().read(row))
    assert refused.value.detail == detail


@pytest.mark.parametrize(
    "row",
    [
        {"id": "1", "type": "chain", "trace_id": "2", "answer": "A"},
        {"id": "1", "run_type": "daily", "trace_id": "2"},
        {"post": [{"title": "a post"}], "patch": []},
        {"post": "text"} | {"answer": "A"},
        {"runs": [{"id": 1}]},
        {"id": "1", "dotted_order": "1.2.3"},
        {},
    ],
)
def test_rows_of_others_are_left_to_them(row: JsonObject) -> None:
    assert not LangSmithAdapter().matches(row, ())


def multipart(parts: dict[str, JsonValue], boundary: str = "b1") -> bytes:
    written = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Length: 9\r\n\r\n'.encode()
        + orjson.dumps(content)
        for name, content in parts.items()
    ]
    return b"\r\n".join([*written, f"--{boundary}--\r\n".encode()])


def decoded(value: bytes) -> tuple[tuple[Piece, ...], tuple[object, ...]]:
    reading = decode_payload(value, (), max_bytes=10**6, default_app="a", received_at=datetime(2026, 3, 2, tzinfo=UTC))
    return reading.pieces, reading.results


@pytest.mark.parametrize("boundary", ["b1", "----formdata-undici-0123456789", "87a1bfacfdd7(4c14):b670"])
def test_a_multipart_body_says_the_same_as_a_batch(boundary: str) -> None:
    own = retrieval()
    outputs, inputs, extra = own.pop("outputs"), own.pop("inputs"), own.pop("extra")
    parts: dict[str, JsonValue] = {
        f"patch.{CHILD}.outputs": outputs,
        f"patch.{CHILD}": own,
        f"patch.{CHILD}.inputs": inputs,
        f"patch.{CHILD}.extra": extra,
        f"patch.{CHILD}.events": [{"name": "start"}],
        f"post.{ROOT}": run(),
        f"attachment.{ROOT}.picture": "…",
        f"feedback.{ROOT}": {"key": "user_score"},
    }
    pieces, results = decoded(multipart(parts, boundary))
    assert results == ()
    assert pieces == (piece({"post": [run()], "patch": [retrieval()]}),)


def test_a_part_may_hold_the_boundary_of_another_body() -> None:
    (found,), _ = decoded(multipart({f"post.{ROOT}": run(inputs={"input": "--b1 and --b1--"})}))
    assert found.steps[0].question == "--b1 and --b1--"


def test_a_run_whose_own_part_is_missing_is_named_by_the_others() -> None:
    _, (refused,) = decoded(multipart({f"post.{ROOT}.outputs": {"answer": "Hot."}}))
    assert isinstance(refused, Rejected)


def test_feedback_alone_is_nothing_to_audit() -> None:
    assert decoded(multipart({f"feedback.{ROOT}": {}})) == ((), (Skipped(SkipReason.NOT_RAG),))


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (multipart({f"post.{ROOT}": run()})[:-8], "wrong_shape", "multipart: cut short"),
        (multipart({f"post.{ROOT}": []}), "wrong_shape", "multipart: a run must be an object"),
        (multipart({"file": {}}), "unsupported_encoding", "multipart: a part that is no run of LangSmith"),
        (
            b'--b1\r\nContent-Disposition: form-data; filename="x"\r\n\r\n{}\r\n--b1--\r\n',
            "wrong_shape",
            "multipart: a part without a name",
        ),
        (b"--b1\r\n", "invalid_json", None),
    ],
)
def test_a_multipart_body_that_cannot_be_read_is_refused_by_name(value: bytes, reason: str, detail: str | None) -> None:
    _, (refused,) = decoded(value)
    assert isinstance(refused, Rejected)
    assert refused.reason == reason
    assert detail in (None, refused.detail)


def test_a_part_that_holds_more_than_one_object_makes_no_run() -> None:
    pieces, (refused,) = decoded(multipart({f"post.{ROOT}": run()}).replace(b"\r\n\r\n{", b'\r\n\r\n{"a":1},{', 1))
    assert pieces == ()
    assert isinstance(refused, Rejected)
