"""What a worker process does, and how it is said on the command line."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """One of three; a process has all by default.

    ``maintain`` runs the scheduled jobs, tells review tasks and takes labels in.
    """

    CONSUME = "consume"
    ATTRIBUTE = "attribute"
    MAINTAIN = "maintain"


ALL_ROLES = ",".join(Role)
# Names of the previous release, accepted until the next one.
_RENAMED = {"jobs": Role.MAINTAIN}


def parse_roles(text: str) -> frozenset[Role]:
    """The roles named in ``text``, with commas between. Raises ValueError for an unknown name, or for no name."""
    names = _names(text)
    if not names:
        raise ValueError("name at least one role")
    return frozenset(_role(name) for name in names)


def warn_of_old_names(text: str) -> None:
    """Log each role that is asked for by a name of the previous release."""
    import structlog  # which the refusal of a wrong name can spare

    log = structlog.get_logger(__name__)
    for name in _names(text):
        if name in _RENAMED:
            log.warning("role_renamed", was=name, now=str(_RENAMED[name]))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _role(name: str) -> Role:
    try:
        return _RENAMED.get(name) or Role(name)
    except ValueError:
        raise ValueError(f"{name!r} is no role; there are {', '.join(Role)}") from None
