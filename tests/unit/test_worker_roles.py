"""Roles as they are said on the command line."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from worker.settings.roles import ALL_ROLES, Role, parse_roles, warn_of_old_names


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        (ALL_ROLES, set(Role)),
        ("consume", {Role.CONSUME}),
        (" attribute , maintain,", {Role.ATTRIBUTE, Role.MAINTAIN}),
        ("jobs", {Role.MAINTAIN}),
    ],
)
def test_roles_are_named_with_commas_between(text: str, roles: set[Role]) -> None:
    assert parse_roles(text) == roles


@pytest.mark.parametrize("text", ["", " , ", "consume,review", "CONSUME"])
def test_what_is_no_role_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="role"):
        parse_roles(text)


def test_an_old_name_is_said_once_in_the_log() -> None:
    with capture_logs() as logs:
        warn_of_old_names("consume,jobs")
        warn_of_old_names(ALL_ROLES)
    assert logs == [{"event": "role_renamed", "log_level": "warning", "was": "jobs", "now": "maintain"}]
