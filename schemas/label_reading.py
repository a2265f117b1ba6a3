"""What the contract makes of a payload or a row: labels, and what was wrong with the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from schemas.dead_letter import MAX_DETAIL_CHARS
from schemas.decoding import Rejected
from schemas.deletion import is_deletion
from schemas.envelope import Found, open_all
from schemas.errors import NoValue, UnusablePayload
from schemas.headers import Headers, header_texts
from schemas.label_adapters import label_adapter_for
from schemas.payload import JsonObject, present
from schemas.reject_reason import RejectReason
from schemas.review_label import LabelAction, ReviewLabel
from schemas.skip_reason import SkipReason
from schemas.timestamps import parse_timestamp

_MAX_FAULTS_TOLD = 3
_LABEL_FAULTS = {"label", "detail", "label_missing", "label_withdrawn", "detail_without_unsupported"}
# Rules that are ours, in words; their own messages may quote the value.
_RULES = {
    "label": "must be supported, unsupported, partly, not_a_claim or cant_tell",
    "detail": "must be baseless or conflict",
    "action": "must be label or withdraw",
    "task_id": "must be a UUID",
}

# The clocks of two machines are never quite the same.
MAX_CLOCK_SKEW = timedelta(minutes=5)

# Days since 1900: 1954 to 2119. As an epoch it lies within a day of 1970.
_EXCEL_DAYS = re.compile(r"[2-7][0-9]{4}(?:\.[0-9]+)?")
_DAY_OR_MONTH_FIRST = re.compile(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}\b.*", re.DOTALL)


Bundle = tuple[ReviewLabel, ...]
"""What one reviewer said at once, such as an annotation: if one of its labels is refused, none of them counts."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The labels that a payload holds, none if it is about something else, and what it holds that can be none.

    ``skip`` says why it holds nothing if something was deleted. ``withheld`` counts the labels that were right, and of
    a bundle with one that was not; ``passed_over`` what the reviewers said that is not about our labels.
    """

    bundles: tuple[Bundle, ...] = ()
    faults: tuple[Rejected, ...] = ()
    skip: SkipReason | None = None
    withheld: int = 0
    passed_over: int = 0

    @property
    def labels(self) -> tuple[ReviewLabel, ...]:
        """Those of all the bundles, in their order."""
        return tuple(label for bundle in self.bundles for label in bundle)


def read_label_payload(
    value: bytes | None, headers: Headers, *, max_bytes: int, received_at: datetime, has_key: bool = False
) -> Reading:
    """Read one message. Never raises, whatever the bytes. ``received_at`` must know its zone.

    With a key (``has_key``) a message without a value is a tombstone.
    """
    headers = tuple(headers)
    try:
        opened = open_all(present(value, max_bytes=max_bytes), headers, max_bytes=max_bytes)
    except UnusablePayload as unusable:
        if has_key and isinstance(unusable, NoValue):
            return Reading(skip=SkipReason.TOMBSTONE)
        return Reading((), (_rejected(unusable),))
    texts = header_texts(headers)
    return _together([_of_body(one, texts, received_at) for one in opened])


def _of_body(one: Found, texts: Mapping[str, str], received_at: datetime) -> Reading:
    if isinstance(one, UnusablePayload):
        return Reading((), (_rejected(one),))
    if is_deletion(one.body, one.event, texts):
        return Reading(skip=SkipReason.DELETION)
    read = read_label_row(one.body, received_at=received_at)
    if one.row is None:
        return read
    faults = (replace(fault, detail=f"row {one.row}: {fault.detail}"[:MAX_DETAIL_CHARS]) for fault in read.faults)
    return replace(read, faults=tuple(faults))


def _together(read: Sequence[Reading]) -> Reading:
    bundles = tuple(bundle for one in read for bundle in one.bundles)
    faults = tuple(fault for one in read for fault in one.faults)
    skip = None if bundles or faults else next((one.skip for one in read if one.skip), None)
    withheld, passed_over = sum(one.withheld for one in read), sum(one.passed_over for one in read)
    return Reading(bundles, faults, skip, withheld, passed_over)


def read_label_row(row: JsonObject, *, received_at: datetime, tool: str | None = None) -> Reading:
    """Read one row, parsed already. Never raises. ``tool`` stands in for the row's own."""
    try:
        adapted = label_adapter_for(row).adapt(row)
    except UnusablePayload as unusable:
        return Reading((), (_rejected(unusable),))
    own = {} if tool is None else {"tool": tool}
    read = [_bundle([_read({**native, **own}, received_at) for native in bundle]) for bundle in adapted.bundles]
    faults = tuple(_rejected(fault) for fault in adapted.faults)
    return _together([*read, Reading(faults=faults, passed_over=adapted.passed_over)])


def _bundle(read: Sequence[ReviewLabel | Rejected]) -> Reading:
    labels = tuple(one for one in read if isinstance(one, ReviewLabel))
    faults = tuple(one for one in read if isinstance(one, Rejected))
    if faults:
        return Reading((), faults, withheld=sum(label.action is LabelAction.LABEL for label in labels))
    return Reading((labels,))


def _read(native: JsonObject, received_at: datetime) -> ReviewLabel | Rejected:
    try:
        return ReviewLabel.model_validate({**native, "labelled_at": _time(native.get("labelled_at"), received_at)})
    except UnusablePayload as unusable:
        return _rejected(unusable)
    except ValidationError as error:
        return _broken(error)


def _time(value: JsonValue, received_at: datetime) -> datetime | None:
    """Raises UnusablePayload rather than guess."""
    if value is None:
        return None
    text = str(value).strip()
    if _EXCEL_DAYS.fullmatch(text):
        raise UnusablePayload(RejectReason.WRONG_SHAPE, "labelled_at: a day number of a spreadsheet; write ISO 8601")
    if _DAY_OR_MONTH_FIRST.fullmatch(text):
        raise UnusablePayload(RejectReason.WRONG_SHAPE, "labelled_at: day or month first; write ISO 8601")
    moment = parse_timestamp(value, received_at=received_at)
    if moment is None:
        raise UnusablePayload(RejectReason.WRONG_SHAPE, "labelled_at: no time from 2015 to tomorrow")
    # It would hold over every correction until then.
    if moment > received_at + MAX_CLOCK_SKEW:
        raise UnusablePayload(RejectReason.WRONG_SHAPE, "labelled_at: in the future; a time without a zone is UTC")
    return moment


def _broken(error: ValidationError) -> Rejected:
    """The first rules that are broken. A word that is no label is a reason of its own."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_FAULTS_TOLD]
    is_label = all((_place(fault) or fault["type"]) in _LABEL_FAULTS for fault in faults)
    reason = RejectReason.BAD_LABEL if is_label else RejectReason.WRONG_SHAPE
    return Rejected(reason, "; ".join(map(_told, faults))[:MAX_DETAIL_CHARS])


def _told(fault: ErrorDetails) -> str:
    place = _place(fault)
    return f"{place}: {_RULES.get(place, fault['type'])}" if place else fault["msg"]


def _place(fault: ErrorDetails) -> str:
    """The field; what is wrong with the label as a whole has none."""
    return next((str(part) for part in fault["loc"] if part in ReviewLabel.model_fields), "")


def _rejected(unusable: UnusablePayload) -> Rejected:
    return Rejected(unusable.reason, unusable.detail[:MAX_DETAIL_CHARS])
