"""Why a row is refused: what it lacks, the format that it looks like, and which of the usual names it has.

Keys of free rows may be content, so a key is told only if it is a word of a known format; the others are counted.
"""

from __future__ import annotations

from collections.abc import Collection

from schemas.errors import UnusablePayload
from schemas.payload import JsonObject
from schemas.reject_reason import RejectReason

_MAX_NAMES_TOLD = 12

# What known formats have, beside the names that are read. Of several the first is told.
_LIKENESSES = (
    ("an OpenAI chat completion", ("choices", "object")),
    ("an OpenAI response", ("output", "object", "status")),
    ("an Anthropic message", ("content", "stop_reason")),
    ("a Gemini response", ("candidates",)),
    ("OTLP", ("resourceSpans",)),
    ("OTLP", ("resource_spans",)),
    ("OTLP logs", ("resourceLogs",)),
    ("a TruLens record", ("record_id", "app_name", "input", "output")),
    ("a Langfuse trace without its observations", ("project_id", "environment", "input", "output")),
    ("a LangSmith run", ("run_type",)),
    ("a promptfoo result", ("vars", "response")),
    ("an event of LangChain", ("event", "run_id")),
    ("a Ragas sample", ("user_input",)),
    ("a DeepEval test case", ("actual_output",)),
    ("a DeepEval test case", ("actualOutput",)),
    ("a LlamaIndex response", ("response", "source_nodes")),
    ("a Haystack answer", ("data", "query")),
    ("a conversation", ("messages",)),
    ("inputs and outputs", ("inputs", "outputs")),
)
# Words of known formats that are not read: told, because they help, and are never content.
_OTHER_WORDS = {
    *(name for _, names in _LIKENESSES for name in names),
    *("additional_metadata", "chat_history", "citations", "context", "conversation_id", "document", "error"),
    *("evidence", "expectedOutput", "expected_output", "finish_reason", "ground_truth", "history", "knowledge"),
    *("level", "message", "meta", "metadata", "name", "passage", "payload", "prompt", "reference"),
    *("reference_contexts", "references", "role", "schema", "session_id", "snippets", "source", "sources"),
    *("span_id", "spans", "status", "tags", "text", "thread_id", "tool_calls", "trace", "type", "usage"),
    *("user", "user_id"),
}
FLAT_ROW = "a flat row"


def refused(row: JsonObject, field: str, rule: str, words: Collection[str], likeness: str | None) -> UnusablePayload:
    """Return the rejection of a row that lacks a field.

    ``words`` are names that are never content; ``likeness`` is what the row looks like. A flat row, or one that looks
    like nothing (None), may look like another format still.
    """
    if likeness in {None, FLAT_ROW}:
        likeness = next((kind for kind, names in _LIKENESSES if all(name in row for name in names)), likeness)
    looks = f"; looks like {likeness}" if likeness else ""
    return UnusablePayload(RejectReason.WRONG_SHAPE, f"{field}: {rule}{looks}; {_saw(row, words)}")


def _saw(row: JsonObject, words: Collection[str]) -> str:
    told = [name for name in row if name in words or name in _OTHER_WORDS][:_MAX_NAMES_TOLD]
    others = len(row) - len(told)
    if not told:
        return f"has none of the known names, {_counted(others, 'field')}"
    return f"has {', '.join(told)}" + (f" and {_counted(others, 'other field')}" if others else "")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
