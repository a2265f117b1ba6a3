"""Lists of messages: one exchange for each turn in which a model answered a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from schemas.adapters.adapter import Finding
from schemas.adapters.fields import FieldNames, facts_of, wrong_shape
from schemas.adapters.passages import read_passages
from schemas.adapters.said import model_of
from schemas.errors import UnusablePayload
from schemas.lines import MAX_ROWS
from schemas.payload import JsonObject
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from schemas.thoughts import THOUGHTS
from schemas.traces.documents import documents_of, looks_retrieved
from schemas.traces.messages import Message, Role, read_messages, unwrapped
from schemas.traces.step import Document
from schemas.values import as_parsed, merged

# Who and where: the same in every message of a conversation, and told of each of its turns.
_OF_ALL_TURNS = ("thread_id", "session_id", "conversation_id", "user_id", "user")
_OWN_PASSAGES = ("retrieval_context", "retrievalContext")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A message, and the object that it was logged as."""

    message: Message
    logged: JsonObject


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a person asked, what tools gave, and what the model answered last, before the person spoke again.

    ``evidence`` is None if nothing was looked for.
    """

    question: str
    answer: _Entry | None
    evidence: tuple[JsonValue, ...] | None


def exchanges_of(
    row: JsonObject, name: str, names: FieldNames, *, beside: JsonValue = None, likeness: str = "a conversation"
) -> tuple[Finding, ...]:
    """Give one exchange for each answered turn of the messages under ``name``, in order.

    The passages of a turn are what its tools gave: documents beside the text of a tool's message or in it, else the
    text as one passage. ``beside`` are passages of the row, those of its last turn if no tool gave it any. A turn
    without tools, in a conversation with some, is not RAG. A conversation that is logged again when it has grown gives
    its turns the same names, if its messages have ids.
    Raises UnusablePayload: wrong_shape where no turn has passages or asked a tool for some, too_many_rows.
    """
    parted = _parted(row[name])
    if len(parted) > MAX_ROWS:
        raise UnusablePayload(RejectReason.TOO_MANY_ROWS, f"{name}: more than {MAX_ROWS} turns in one message")
    turns = [_turn(entries) for entries in parted]
    answered = [turn for turn in turns if turn.answer is not None]
    if beside is not None and answered and not answered[-1].evidence:
        answered[-1] = replace(answered[-1], evidence=tuple(read_passages(beside, "passages")))
    if all(turn.evidence is None for turn in (*turns, *answered)):
        rule = "no tool's message among them, and no passages beside them" if answered else "no answer among them"
        raise wrong_shape(name, f"{rule}; looks like {likeness}")
    if not answered:
        return (SkipReason.NO_ANSWER,)
    rest = {key: value for key, value in row.items() if key != name}
    shared = {key: rest[key] for key in (*_OF_ALL_TURNS, *names.app, *names.interaction_id) if key in rest}
    return tuple(
        _exchange(turn, number, rest if number == len(answered) else shared, names)
        for number, turn in enumerate(answered, start=1)
    )


def holds_answer(logged: JsonValue) -> bool:
    """Whether messages are among the entries of a list, and one of them is a model's."""
    listed = logged if isinstance(logged, list) else []
    return any(message.role is Role.ASSISTANT for one in listed for message in read_messages(one))


def _parted(logged: JsonValue) -> list[list[_Entry]]:
    """The messages of each turn, which begins with what a person says; what stands before the first is in none."""
    listed = logged if isinstance(logged, list) else []
    if len(listed) == 1 and isinstance(listed[0], list):
        # The one prompt of a batch.
        listed = listed[0]
    turns: list[list[_Entry]] = []
    for one in listed:
        about = unwrapped(one) if isinstance(one, dict) else {}
        for message in read_messages(one):
            if message.role is Role.USER and message.text.strip():
                turns.append([])
            if turns:
                turns[-1].append(_Entry(message, about))
    return turns


def _turn(entries: Sequence[_Entry]) -> _Turn:
    said = [entry for entry in entries[1:] if entry.message.role is Role.ASSISTANT]
    answers = [entry for entry in said if entry.message.text.strip() and not entry.message.calls_tools]
    answer = answers[-1] if answers else None
    gave = [entry for entry in entries if entry.message.role is Role.TOOL]
    own = _own_passages(answer.logged) if answer else None
    if not gave and own is None and not any(entry.message.calls_tools for entry in said):
        return _Turn(entries[0].message.text, answer, None)
    found = [passage for entry in gave if entry.logged.get("status") != "error" for passage in _given(entry)]
    return _Turn(entries[0].message.text, answer, _unique([*found, *(own or ())]))


def _own_passages(logged: JsonObject) -> list[JsonValue] | None:
    """Passages that a test case has at the answer itself."""
    name = next((name for name in _OWN_PASSAGES if logged.get(name) is not None), None)
    return None if name is None else read_passages(logged[name], name)


def _given(entry: _Entry) -> list[JsonValue]:
    """What a tool gave: the documents beside its text, those in it, or the text as one."""
    text = entry.message.text
    documents = documents_of(entry.message.artifact) or (
        documents_of(as_parsed(text)) if looks_retrieved(text) else None
    )
    if not documents:
        tool = entry.logged.get("name")
        about: JsonObject = {"tool": tool} if isinstance(tool, str) else {}
        documents = (Document(text=text, metadata=about),) if text.strip() else ()
    return [document.model_dump(mode="json", exclude_none=True) for document in documents]


def _unique(passages: Sequence[JsonValue]) -> tuple[JsonValue, ...]:
    """The passages without those that a second search found again."""
    first: dict[tuple[JsonValue, JsonValue], JsonValue] = {}
    for passage in passages:
        about = passage if isinstance(passage, dict) else {}
        first.setdefault((str(about.get("id")), str(about.get("text"))), passage)
    return tuple(first.values())


def _exchange(turn: _Turn, number: int, about: JsonObject, names: FieldNames) -> Finding:
    if turn.evidence is None:
        return SkipReason.NOT_RAG
    rest = dict(about)
    facts = facts_of(rest, names)
    row_id = facts["interaction_id"]
    answer = turn.answer or _Entry(Message(Role.ASSISTANT), {})
    thoughts = answer.message.thoughts
    ours: JsonObject = {**({"turn": number} if number > 1 else {}), **({THOUGHTS: thoughts} if thoughts else {})}
    return {
        **facts,
        "question": turn.question,
        "passages": read_passages(list(turn.evidence), "messages"),
        "answer": answer.message.text,
        "interaction_id": answer.message.id or (f"{row_id}#{number}" if row_id and number > 1 else row_id),
        "generator_model": facts["generator_model"] or model_of(answer.logged),
        "metadata": merged(ours, {key: value for key, value in rest.items() if value is not None}),
    }
