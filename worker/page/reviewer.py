"""Who asks: a reviewer, told by a reverse proxy or by a login of the page's own.

An ``Identity`` is all that the application knows of either.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Protocol

from starlette.requests import Request

from schemas.review_label import MAX_NAME_CHARS


class Role(StrEnum):
    """What somebody may do. A lead may do all that a reviewer may."""

    REVIEWER = "reviewer"
    LEAD = "lead"


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Somebody who labels, by the name that their labels carry."""

    name: str
    role: Role


class Identity(Protocol):
    """Tells who asks."""

    @property
    def has_login(self) -> bool:
        """Whether people say who they are on the page itself."""

    def reviewer(self, request: Request) -> Reviewer | None:
        """Who asks; None if nobody is known by what the request says."""


@dataclass(frozen=True, slots=True)
class ProxyIdentity:
    """Believes a header, and only where the connection itself comes from one of the trusted addresses."""

    header: str
    trusted: Sequence[IPv4Network | IPv6Network]
    leads: frozenset[str]

    @property
    def has_login(self) -> bool:
        """The proxy has it."""
        return False

    def reviewer(self, request: Request) -> Reviewer | None:
        """Whom the header names. One that is there twice is believed of nobody: a client may have sent the other."""
        values = request.headers.getlist(self.header)
        if not self._is_trusted(request) or len(values) != 1:
            return None
        name = usable_name(_text(values[0]))
        return None if name is None else Reviewer(name, Role.LEAD if name in self.leads else Role.REVIEWER)

    def _is_trusted(self, request: Request) -> bool:
        try:
            peer = ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        plain = getattr(peer, "ipv4_mapped", None) or peer
        return any(plain.version == network.version and plain in network for network in self.trusted)


def usable_name(name: str) -> str | None:
    """The name without blanks around it; None if it is empty, too long or has a character that nobody sees."""
    name = unicodedata.normalize("NFC", name.strip())
    if not 1 <= len(name) <= MAX_NAME_CHARS or any(unicodedata.category(sign)[0] == "C" for sign in name):
        return None
    return name


def _text(value: str) -> str:
    """A header's value as UTF-8, which proxies send; the server has read its bytes as Latin-1."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value
