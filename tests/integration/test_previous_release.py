"""What the logins of the previous release may do, before and after the database roles of this one were run."""

from __future__ import annotations

from pathlib import Path

from migrations.revisions import LAST_UNDECLARED
from migrations.upgrade import upgrade
from tests.integration.store_examples import rows
from tests.integration.test_roles import apply_roles
from tests.previous_release import unpack_previous_release

ROLES = ("gasp_worker", "gasp_reviewer", "gasp_dashboard")
GRANTS = """
    SELECT grantee::regrole::text AS role, privilege_type AS may, oid::regclass::text AS what
    FROM pg_class, aclexplode(relacl)
    UNION SELECT grantee::regrole::text, privilege_type, attrelid::regclass || '.' || attname
    FROM pg_attribute, aclexplode(attacl)
    UNION SELECT grantee::regrole::text, privilege_type, pg_proc.oid::regprocedure::text
    FROM pg_proc, aclexplode(proacl)
"""


def grants(url: str) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in rows(url, GRANTS) if row["role"] in ROLES}


def test_logins_of_the_release_before_keep_what_they_may_through_an_upgrade(
    empty_database_url: str, tmp_path: Path
) -> None:
    upgrade(empty_database_url, LAST_UNDECLARED)
    apply_roles(empty_database_url, unpack_previous_release(tmp_path) / "deploy" / "sql" / "roles.sql")
    before = grants(empty_database_url)
    assert {role for role, _, _ in before} == set(ROLES)

    upgrade(empty_database_url)
    migrated = grants(empty_database_url)
    assert before == migrated

    apply_roles(empty_database_url)
    assert before < grants(empty_database_url)
