"""Bedrock's RetrieveAndGenerate, and what Bedrock and Kendra retrieve in rows that have an answer beside it."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.skip_reason import SkipReason
from tests.unit.formats.vendors import (
    ANSWER,
    FIRST,
    HOURS,
    PRICES,
    QUESTION,
    SECOND,
    adapter_of,
    exchange,
    passages,
    refusal,
    skipped,
)


def reference(chunk: str | None, content: dict[str, Any], **location: Any) -> dict[str, Any]:
    metadata = {"year": 2025.0} | ({"x-amz-bedrock-kb-chunk-id": chunk} if chunk else {})
    return {"content": content, "location": location, "metadata": metadata}


def citation(said: str, *references: dict[str, Any]) -> dict[str, Any]:
    part = {"textResponsePart": {"text": said, "span": {"start": 0, "end": len(said)}}}
    return {"generatedResponsePart": part, "retrievedReferences": list(references)}


A = reference("kb-1", {"text": HOURS, "type": "TEXT"}, type="S3", s3Location={"uri": "s3://kb/hours.md"})
B = reference(None, {"text": PRICES}, type="WEB", webLocation={"url": "https://b.example"})
PASSAGES = [("kb-1", HOURS, None), ("https://b.example", PRICES, None)]


def generated(*citations: dict[str, Any], text: str = ANSWER, **more: Any) -> dict[str, Any]:
    return {"sessionId": "s-1", "output": {"text": text}, "citations": list(citations), **more}


CITED = generated(citation(FIRST, A), citation(SECOND, B, A))
MODEL = "arn:aws:bedrock:eu-central-1::foundation-model/x"
CONFIGURATION = {"type": "KNOWLEDGE_BASE", "knowledgeBaseConfiguration": {"knowledgeBaseId": "K", "modelArn": MODEL}}
REQUEST = {"input": {"text": QUESTION}, "retrieveAndGenerateConfiguration": CONFIGURATION}


def test_a_generated_response_has_the_cited_passages_once_and_says_that_it_has_no_others() -> None:
    found = exchange(CITED)
    assert (found.question, found.answer, passages(found)) == ("", ANSWER, PASSAGES)
    assert found.passages[0].metadata == {"year": 2025.0, "location": "s3://kb/hours.md"}
    assert (found.metadata["evidence"], found.metadata["question"]) == ("cited_only", "absent")
    assert adapter_of(CITED) == "bedrock_retrieve_and_generate"


def test_two_answers_of_one_session_are_two_exchanges() -> None:
    other = generated(citation(FIRST, A), text=FIRST)
    assert exchange(CITED).interaction_id != exchange(other).interaction_id
    named = generated(citation(FIRST, A), ResponseMetadata={"RequestId": "req-1", "HTTPStatusCode": 200})
    assert exchange(named).interaction_id == "req-1"


@pytest.mark.parametrize(
    "row",
    [{"request": REQUEST, "response": CITED}, {**CITED, **REQUEST}, {"input": REQUEST, "output": CITED}],
    ids=["request", "one-object", "input"],
)
def test_question_and_model_come_from_the_request(row: dict[str, Any]) -> None:
    found = exchange(row)
    assert (found.question, found.generator_model, passages(found)) == (QUESTION, MODEL, PASSAGES)


def test_a_response_that_cites_nothing_is_refused_by_name() -> None:
    for nothing in (generated(), generated(citation(ANSWER))):
        assert refusal(nothing) == (
            "bedrock_retrieve_and_generate: "
            "citations: cite nothing, and the response has no other passages; log those of Retrieve beside it"
        )
    assert skipped(generated(citation("", A), text="")) is SkipReason.NO_ANSWER


def test_what_was_retrieved_beside_a_generated_response_is_all_of_the_evidence() -> None:
    for row in ({"retrievalResults": [A, B], "response": CITED}, {"passages": [A, B], "response": generated()}):
        found = exchange(row)
        assert passages(found) == PASSAGES
        assert "evidence" not in found.metadata


def test_passages_that_are_no_text_are_read_as_what_they_say() -> None:
    row: dict[str, Any] = {
        "row": [{"columnName": "day", "columnValue": "Sunday"}, {"columnName": "price", "columnValue": "0"}]
    }
    audio: dict[str, Any] = {"type": "AUDIO", "audio": {"s3Uri": "s3://a", "transcription": "At nine."}}
    picture: dict[str, Any] = {"type": "IMAGE", "byteContent": "data:image/png;base64,AA=="}
    found = exchange(
        generated(citation(ANSWER, *(reference(f"c{n}", one) for n, one in enumerate((row, audio, picture)))))
    )
    assert passages(found) == [("c0", "day: Sunday\nprice: 0", None), ("c1", "At nine.", None), ("c2", "", None)]


KENDRA = [
    {
        "Id": "k-1",
        "DocumentId": "d-1",
        "DocumentTitle": "Hours",
        "Content": HOURS,
        "DocumentURI": "https://a.example",
        "ScoreAttributes": {"ScoreConfidence": "HIGH"},
    },
    {
        "Id": "k-2",
        "Type": "DOCUMENT",
        "DocumentId": "d-2",
        "DocumentTitle": {"Text": "Prices"},
        "DocumentExcerpt": {"Text": PRICES},
    },
]
RESULTS = [{**A, "score": 0.8}, {**B, "score": 0.4}]


@pytest.mark.parametrize(
    ("logged", "name", "found"),
    [
        (KENDRA, "kendra_retrieve", [("k-1", HOURS, None), ("k-2", PRICES, None)]),
        (RESULTS, "bedrock_retrieve", [("kb-1", HOURS, 0.8), ("https://b.example", PRICES, 0.4)]),
    ],
    ids=["kendra", "bedrock"],
)
def test_a_list_of_what_was_retrieved_is_the_passages_of_the_row(
    logged: list[dict[str, Any]], name: str, found: list[tuple[str, str, float | None]]
) -> None:
    own = "ResultItems" if name == "kendra_retrieve" else "retrievalResults"
    for place in (
        {"documents": logged},
        {own: logged},
        {"retrieval": {"QueryId": "q", own: logged}},
        {"contexts": {own: logged}},
    ):
        row = {"question": QUESTION, "answer": ANSWER, "session": "s", **place}
        read = exchange(row)
        assert (read.question, read.answer, passages(read)) == (QUESTION, ANSWER, found)
        assert (adapter_of(row), read.metadata) == (name, {"session": "s"})
    assert refusal({own: logged}) == f"answer: missing; {name} holds what was retrieved, and no answer"
    assert refusal({"request": {}, "response": {own: logged}}).startswith("answer: missing")


@pytest.mark.parametrize("place", ["retrieval", "retrievalResults", "documents"])
def test_what_was_retrieved_is_the_evidence_of_any_models_answer(place: str) -> None:
    message = {"role": "assistant", "content": ANSWER}
    completion = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    logged = {"retrievalResults": RESULTS} if place == "retrieval" else RESULTS
    row = {"question": QUESTION, "response": completion, place: logged}
    found = exchange(row)
    assert (found.question, found.answer, adapter_of(row)) == (QUESTION, ANSWER, "openai_chat")
    assert passages(found) == [("kb-1", HOURS, 0.8), ("https://b.example", PRICES, 0.4)]


def test_an_empty_list_of_what_was_retrieved_is_no_passages() -> None:
    assert exchange({"question": QUESTION, "answer": ANSWER, "retrievalResults": []}).passages == ()
