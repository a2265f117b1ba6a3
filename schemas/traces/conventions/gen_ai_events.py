"""What was said, as OpenTelemetry's convention for generative AI logs it apart from the spans: in the logs signal."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.traces.convention import service_name
from schemas.traces.conventions.gen_ai import CHOICE, said_in_event, told
from schemas.traces.messages import last_answer, last_question
from schemas.traces.span import LogRecord
from schemas.traces.step import Step, StepKind

_DETAILS = ("gen_ai.client.inference.operation.details", "gen_ai.retrieval.documents", "gen_ai.retrieval.query")
_SAID = ("gen_ai.user.message", CHOICE)


@dataclass(frozen=True, slots=True)
class GenAiEvents:
    """Reads what the user said last and what the model answered; the rest of a conversation is no part of it."""

    name: str = "gen_ai_events"

    def matches(self, record: LogRecord) -> bool:
        """Whether the record is one of the events."""
        return record.name in (*_DETAILS, *_SAID)

    def step(self, record: LogRecord) -> Step | None:
        """Say what the record tells of its span."""
        if record.span_id is None:
            return None
        step = Step(
            id=record.span_id,
            # Before whatever the span itself says when it is over.
            order=(0, record.logged_ns or 0),
            app=service_name(record.resource),
        )
        if record.name in _DETAILS:
            body = record.body if isinstance(record.body, dict) else {}
            return told(step, {**body, **record.attributes})
        messages = said_in_event(record.name, record.body)
        answer = last_answer(messages)
        return step.model_copy(
            update={
                "kind": StepKind.LLM,
                "prompt": last_question(messages),
                "answer": answer.text if answer else None,
                "thoughts": answer.thoughts if answer else None,
            }
        )
