"""Bodies that LangSmith's clients post as multipart/form-data, written again as the JSON of a batch.

A run comes in a part ``post.<id>`` or ``patch.<id>``, and each of its large fields in one of its own, named
``post.<id>.inputs``. The boundary is read from the body itself, so that it is not missed where nobody kept the headers.
"""

from __future__ import annotations

import re

from schemas.errors import UnusablePayload
from schemas.reject_reason import RejectReason

_LINE = b"\r\n"
_DASHES = b"--"
_OPENING = re.compile(rb"(?:\r\n)?(--[0-9A-Za-z'()+_,./:=? -]{1,70})\r\nContent-", re.IGNORECASE)
_NAME = re.compile(rb'^Content-Disposition:[^\r\n]{0,200}?[; ]name="?([^"\r\n;]{1,200})', re.IGNORECASE | re.MULTILINE)
_RUN = re.compile(rb"(post|patch)\.([0-9A-Za-z_-]{1,64})(?:\.([a-z_]{1,32}))?")
# Feedback on a run, and files that belong to it: nothing of an exchange.
_ASIDE = re.compile(rb"(?:feedback|attachment)\.")
# What a run says of itself and nobody reads: every token that was streamed, the classes that ran.
_NOT_READ = (b"events", b"serialized", b"manifest")


def multipart_as_json(value: bytes) -> bytes | None:
    """Return ``{"post": […], "patch": […]}`` with the parts as they stand, or None if it is no multipart body.

    Nothing checks here that the parts are JSON. Raises UnusablePayload: wrong_shape if the body is cut short, or a run
    is no object; unsupported_encoding if it has other parts than a client of LangSmith sends.
    """
    opening = _OPENING.match(value)
    if opening is None:
        return None
    runs: dict[tuple[bytes, bytes], dict[bytes, bytes]] = {}
    for name, content in _parts(value, _LINE + opening[1]):
        run = _RUN.fullmatch(name)
        if run is not None:
            runs.setdefault((run[1], run[2]), {})[run[3] or b""] = content
        elif not _ASIDE.match(name):
            raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, "multipart: a part that is no run of LangSmith")
    written = {way: [_run(own, parts) for (other, own), parts in runs.items() if other == way] for way in _WAYS}
    return b"{" + b",".join(b'"%s":[%s]' % (way, b",".join(those)) for way, those in written.items()) + b"}"


_WAYS = (b"post", b"patch")


def _parts(value: bytes, delimiter: bytes) -> list[tuple[bytes, bytes]]:
    """The name and the content of each part, in order."""
    before, *parts = (value if value.startswith(_LINE) else _LINE + value).split(delimiter)
    if before or not parts or not parts[-1].startswith(_DASHES):
        raise _refused("cut short")
    return [_part(part) for part in parts[:-1]]


def _part(part: bytes) -> tuple[bytes, bytes]:
    head, blank, content = part.partition(_LINE + _LINE)
    name = _NAME.search(head)
    if not blank or name is None:
        raise _refused("a part without a name")
    return name[1].strip(), content


def _run(own_id: bytes, parts: dict[bytes, bytes]) -> bytes:
    """The run as one object. A field that lies in a part of its own comes last, and so counts."""
    run = parts.get(b"", b'{"id":"%s"}' % own_id).strip()
    fields = [b'"%s":%s' % (name, content) for name, content in parts.items() if name and name not in _NOT_READ]
    if not (run.startswith(b"{") and run.endswith(b"}")):
        raise _refused("a run must be an object")
    inside = run[1:-1].strip()
    return b"{" + b",".join([inside, *fields] if inside else fields) + b"}"


def _refused(rule: str) -> UnusablePayload:
    return UnusablePayload(RejectReason.WRONG_SHAPE, f"multipart: {rule}")
