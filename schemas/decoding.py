"""What the contract makes of a payload: interactions with what was repaired, rejections with reasons, pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TypeAlias

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.adapters.adapter import Adapter, Finding
from schemas.adapters.columns import with_json_columns
from schemas.dead_letter import MAX_DETAIL_CHARS
from schemas.deletion import is_deletion
from schemas.encodings.schema import NO_SCHEMAS, Schemas
from schemas.envelope import Found, Opened, open_all
from schemas.errors import NoValue, UnusablePayload
from schemas.formats import AUTO, ENCODINGS, encoding_of, reader_of
from schemas.headers import Headers, header_texts
from schemas.interaction import MAX_ID_CHARS, Interaction, Passage
from schemas.names import derived_id, suffixed_id
from schemas.payload import JsonObject, present
from schemas.reject_reason import RejectReason
from schemas.repair import Repair
from schemas.skip_reason import SkipReason
from schemas.text import REPLACEMENT
from schemas.thoughts import with_thoughts_apart
from schemas.timestamps import parse_timestamp
from schemas.traces.piece import Piece
from schemas.values import as_text, merged

# Stands in until the row is known to be valid.
_ID_PENDING = "pending"
_MAX_FAULTS_TOLD = 3
# An id of the greatest length, every character written as an escape.
_MAX_SPELLED_CHARS = len(r"\u0000") * MAX_ID_CHARS
_CONTRACT_FIELDS = {*Interaction.model_fields, *Passage.model_fields}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A valid interaction, the adapter that read it, and what had to be repaired on the way (short fixed words)."""

    interaction: Interaction
    adapter: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A payload that is no interaction and never will be. ``detail`` names the place and the rule, never the value."""

    reason: RejectReason
    detail: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A payload that is no interaction, and is in order: nothing was to be audited."""

    reason: SkipReason


Result: TypeAlias = Decoded | Rejected | Skipped


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message says: what became of each exchange in it, in order, and the pieces of traces. Never nothing."""

    results: tuple[Result, ...] = ()
    pieces: tuple[Piece, ...] = ()


def decode_payload(
    value: bytes | None,
    headers: Headers,
    *,
    max_bytes: int,
    default_app: str,
    received_at: datetime,
    has_key: bool = False,
    format_name: str = AUTO,
    schemas: Schemas = NO_SCHEMAS,
) -> Reading:
    """Read one message. Raises nothing, whatever the bytes and headers, but what the source of ``schemas`` does.

    With a key (``has_key``) a message without a value is a tombstone. ``max_bytes`` bounds the value, compressed and
    not, ``default_app`` (a valid app name) stands in where a row names no app. ``received_at`` must know its zone; a
    time more than a day after it is dropped. ``format_name`` is one of ``FORMATS``.
    """
    message = _Message(value or b"", tuple(headers), max_bytes, format_name, schemas)
    try:
        opened = message.opened(present(value, max_bytes=max_bytes))
    except UnusablePayload as unusable:
        if has_key and isinstance(unusable, NoValue):
            return Reading((Skipped(SkipReason.TOMBSTONE),))
        return Reading((_rejected(unusable),))
    results: list[Result] = []
    pieces: list[Piece] = []
    spelled = cache(message.spelled)
    texts = header_texts(message.headers)
    for index, one in enumerate(opened):
        body = _Body(message, index, texts, spelled)
        for found in _read(one, body, default_app=default_app, received_at=received_at):
            if isinstance(found, Piece):
                pieces.append(found)
            else:
                results.append(found)
    return Reading(tuple(results), tuple(pieces))


def decode_exchange(native: JsonObject, adapter: str, *, default_app: str, received_at: datetime) -> Decoded | Rejected:
    """Check an exchange in native form that was put together from several messages. Never raises."""
    return _decoded(native, Opened({}), adapter, None, default_app=default_app, received_at=received_at)


@dataclass(frozen=True, slots=True)
class _Message:
    """The bytes of one message and how they are to be read."""

    value: bytes
    headers: tuple[tuple[str, bytes | None], ...]
    max_bytes: int
    format_name: str
    schemas: Schemas

    def opened(self, value: bytes) -> tuple[Found, ...]:
        return self._opened(value, spelled=False)

    def spelled(self) -> tuple[Found, ...]:
        """The same of a usable message, with escapes in the place of characters that cannot be stored."""
        return self._opened(self.value, spelled=True)

    def _opened(self, value: bytes, *, spelled: bool) -> tuple[Found, ...]:
        return open_all(
            value,
            self.headers,
            max_bytes=self.max_bytes,
            schemas=self.schemas,
            only=encoding_of(self.format_name),
            spelled=spelled,
        )

    def reading(self, opened: Opened, *, spelled: bool = False) -> tuple[Adapter, tuple[Finding, ...]]:
        """What a body holds, and the adapter that says so. Raises UnusablePayload, with the format if one is set."""
        body = with_json_columns(opened.body, spelled=spelled) if opened.is_change else opened.body
        adapter = reader_of(body, self.headers, self.format_name)
        try:
            return adapter, tuple(adapter.read(body))
        except UnusablePayload as unusable:
            if self.format_name in (AUTO, *ENCODINGS):
                raise
            raise UnusablePayload(unusable.reason, f"{adapter.name}: {unusable.detail}") from None


@dataclass(frozen=True, slots=True)
class _Body:
    """One of the bodies of a message. ``texts`` are its headers; ``spelled`` opens the message again, once."""

    message: _Message
    index: int
    texts: Mapping[str, str]
    spelled: Callable[[], tuple[Found, ...]]

    def findings_again(self) -> tuple[Opened, tuple[Finding, ...]]:
        """What the body holds, with unstorable characters apart."""
        opened = self.spelled()[self.index]
        if isinstance(opened, UnusablePayload):
            return Opened({}), ()
        return opened, self.message.reading(opened, spelled=True)[1]


def _read(one: Found, body: _Body, *, default_app: str, received_at: datetime) -> Iterator[Result | Piece]:
    """What one body holds."""
    if isinstance(one, UnusablePayload):
        yield _rejected(one)
        return
    if is_deletion(one.body, one.event, body.texts):
        yield Skipped(SkipReason.DELETION)
        return
    try:
        adapter, findings = body.message.reading(one)
    except UnusablePayload as unusable:
        yield _rejected(unusable, one.row)
        return
    again = cache(body.findings_again)
    for index, found in enumerate(findings):
        if isinstance(found, Piece):
            yield found
        elif isinstance(found, SkipReason):
            yield Skipped(found)
        else:
            spelled = _Spelled(again, index, default_app)
            yield _decoded(found, one, adapter.name, spelled, default_app=default_app, received_at=received_at)


@dataclass(frozen=True, slots=True)
class _Spelled:
    """Reads an exchange again, with escapes in the place of characters that cannot be stored."""

    again: Callable[[], tuple[Opened, tuple[Finding, ...]]]
    finding: int
    default_app: str

    def __call__(self) -> JsonObject:
        opened, findings = self.again()
        found = findings[self.finding] if self.finding < len(findings) else {}
        native = found if isinstance(found, dict) else {}
        return _completed(native, opened, default_app=self.default_app, max_id_chars=_MAX_SPELLED_CHARS)


def _decoded(
    native: JsonObject,
    opened: Opened,
    adapter: str,
    spelled: Callable[[], JsonObject] | None,
    *,
    default_app: str,
    received_at: datetime,
) -> Decoded | Rejected:
    try:
        native = _completed(native, opened, default_app=default_app)
        dated, repairs = _dated(native, received_at=received_at)
        interaction = _validated(dated)
        interaction_id, renamed = _named(native, spelled or (lambda: native))
    except UnusablePayload as unusable:
        return _rejected(unusable, opened.row)
    named = interaction.model_copy(update={"interaction_id": interaction_id}) if renamed else interaction
    return Decoded(named, adapter, (*opened.repairs, *repairs, *renamed))


def _rejected(unusable: UnusablePayload, row: int | None = None) -> Rejected:
    detail = unusable.detail if row is None else f"row {row}: {unusable.detail}"
    return Rejected(unusable.reason, detail[:MAX_DETAIL_CHARS])


def _named(native: JsonObject, spelled: Callable[[], JsonObject]) -> tuple[str, tuple[Repair, ...]]:
    """The exchange's id, and what was done to it. ``spelled`` reads the row again with unstorable characters apart."""
    interaction_id = native["interaction_id"]
    if not isinstance(interaction_id, str):
        may_be_repaired = REPLACEMENT.encode() in orjson.dumps(native)
        return derived_id(spelled() if may_be_repaired else native), (Repair.ID_DERIVED,)
    if REPLACEMENT not in f"{native['app']}{interaction_id}":
        return interaction_id, ()
    logged = spelled()
    if (logged["app"], logged["interaction_id"]) == (native["app"], interaction_id):
        return interaction_id, ()
    return suffixed_id(interaction_id, logged["app"], logged["interaction_id"]), (Repair.ID_SUFFIXED,)


def _completed(native: JsonObject, opened: Opened, *, default_app: str, max_id_chars: int = MAX_ID_CHARS) -> JsonObject:
    """Fill what the row leaves out from what is around it. The attributes of CloudEvents are kept as metadata.

    What a model thought before it answered is no part of the answer that was shown.
    """
    native, event = with_thoughts_apart(native), opened.event
    complete = dict(native)
    complete["interaction_id"] = native.get("interaction_id") or _event_id(opened, max_id_chars)
    complete["app"] = native.get("app") or default_app
    if native.get("occurred_at") is None:
        complete["occurred_at"] = event.get("time") if opened.changed_at is None else opened.changed_at
    if event:
        complete["metadata"] = _with_metadata(native, {"cloudevent": event})
    return complete


def _event_id(opened: Opened, max_chars: int) -> str | None:
    """An event's id is unique only together with its source, and of several rows in it each has a number."""
    source, event_id = as_text(opened.event.get("source")), as_text(opened.event.get("id"))
    joined = f"{source}#{event_id}" if source and event_id else event_id
    if joined and opened.event_row is not None:
        joined = f"{joined}#{opened.event_row}"
    return joined if joined and len(joined) <= max_chars else None


def _dated(native: JsonObject, *, received_at: datetime) -> tuple[dict[str, object], tuple[Repair, ...]]:
    """Turn ``occurred_at`` into a datetime. One that is none is kept as metadata: a bad clock rejects no message."""
    logged = native.get("occurred_at")
    occurred_at = parse_timestamp(logged, received_at=received_at)
    if logged is None or occurred_at is not None:
        return {**native, "occurred_at": occurred_at}, ()
    metadata = _with_metadata(native, {"occurred_at": logged})
    return {**native, "occurred_at": None, "metadata": metadata}, (Repair.OCCURRED_AT_DROPPED,)


def _with_metadata(native: JsonObject, others: JsonObject) -> JsonObject:
    metadata = native.get("metadata")
    return merged(metadata if isinstance(metadata, dict) else {}, others)


def _validated(native: dict[str, object]) -> Interaction:
    """Check the row against the contract. One without an id is named later."""
    try:
        return Interaction.model_validate({**native, "interaction_id": native["interaction_id"] or _ID_PENDING})
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        detail = "; ".join(_fault(fault) for fault in faults[:_MAX_FAULTS_TOLD])
        raise UnusablePayload(RejectReason.WRONG_SHAPE, detail) from None


def _fault(fault: ErrorDetails) -> str:
    """The field's path and the broken rule. Keys of free-form objects are message content, so they are starred."""
    path = (str(part) if isinstance(part, int) or part in _CONTRACT_FIELDS else "*" for part in fault["loc"])
    return f"{'.'.join(path)}: {fault['type']}"
