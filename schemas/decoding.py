"""What the contract makes of a payload: an interaction with what was repaired, or a rejection with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.adapters import adapter_for
from schemas.adapters.fields import merged
from schemas.adapters.values import as_text
from schemas.dead_letter import MAX_DETAIL_CHARS
from schemas.envelope import JsonObject, open_envelope
from schemas.errors import UnusablePayload
from schemas.headers import Headers
from schemas.interaction import MAX_ID_CHARS, Interaction, Passage
from schemas.payload import present
from schemas.reject_reason import RejectReason
from schemas.repair import Repair
from schemas.timestamps import parse_timestamp

# Stands in until the content is known to be valid and can be hashed. The id is no part of the hash.
_ID_PENDING = "pending"
_HASH_CHARS_IN_ID = 32
_MAX_FAULTS_TOLD = 3
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


def decode_payload(
    value: bytes | None, headers: Headers, *, max_bytes: int, default_app: str, received_at: datetime
) -> Decoded | Rejected:
    """Read one message. Never raises, whatever the bytes and headers.

    ``max_bytes`` bounds the value. ``default_app`` (a valid app name) stands in where the row names no app.
    ``received_at`` must know its zone; a time more than a day after it is dropped.
    """
    headers = tuple(headers)
    try:
        opened = open_envelope(present(value, max_bytes=max_bytes), headers)
        adapter = adapter_for(opened.body, headers)
        native = _completed(adapter.adapt(opened.body), opened.event, default_app=default_app)
        dated, repairs = _dated(native, received_at=received_at)
        interaction = _validated(dated)
    except UnusablePayload as unusable:
        return Rejected(unusable.reason, unusable.detail[:MAX_DETAIL_CHARS])
    return Decoded(interaction, adapter.name, (*opened.repairs, *repairs))


def _completed(native: JsonObject, event: JsonObject, *, default_app: str) -> JsonObject:
    """Fill what the row leaves out from the CloudEvents attributes around it, which are kept as metadata."""
    complete = dict(native)
    complete["interaction_id"] = native.get("interaction_id") or _event_id(event)
    complete["app"] = native.get("app") or default_app
    if native.get("occurred_at") is None:
        complete["occurred_at"] = event.get("time")
    if event:
        complete["metadata"] = _with_metadata(native, {"cloudevent": event})
    return complete


def _event_id(event: JsonObject) -> str | None:
    """An event's id is unique only together with its source."""
    source, event_id = as_text(event.get("source")), as_text(event.get("id"))
    joined = f"{source}#{event_id}" if source and event_id else event_id
    return joined if joined and len(joined) <= MAX_ID_CHARS else None


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
    """Check the row against the contract; one without an id is named after its content."""
    try:
        interaction = Interaction.model_validate({**native, "interaction_id": native["interaction_id"] or _ID_PENDING})
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        detail = "; ".join(_fault(fault) for fault in faults[:_MAX_FAULTS_TOLD])
        raise UnusablePayload(RejectReason.WRONG_SHAPE, detail) from None
    if native["interaction_id"]:
        return interaction
    return interaction.model_copy(update={"interaction_id": f"sha256-{interaction.content_hash[:_HASH_CHARS_IN_ID]}"})


def _fault(fault: ErrorDetails) -> str:
    """The field's path and the broken rule. Keys of free-form objects are message content, so they are starred."""
    path = (str(part) if isinstance(part, int) or part in _CONTRACT_FIELDS else "*" for part in fault["loc"])
    return f"{'.'.join(path)}: {fault['type']}"
