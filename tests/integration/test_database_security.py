"""A PostgreSQL that is reached over TLS, with passwords and certificates."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from migrations.errors import MigrationError
from migrations.revisions import head_revision
from migrations.upgrade import upgrade
from tests.certificates import CLIENT, KEY_PASSWORD
from tests.tls_postgres import PASSWORD, USER, NoTlsError, TlsPostgres, tls_postgres
from tests.workers import WORKER
from worker.commands.check import check_setup
from worker.store.errors import StoreNotReady
from worker.store.store import open_store

WRONG_PASSWORD = "wr0ng-and-still-private"
SECRETS = (PASSWORD, WRONG_PASSWORD, KEY_PASSWORD)


@pytest.fixture(scope="module")
def server() -> Iterator[TlsPostgres]:
    """A server with a certificate for localhost, which lets nobody in without TLS."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(tls_postgres())
        except NoTlsError as error:
            pytest.skip(str(error))


@pytest.fixture
def verified(server: TlsPostgres) -> dict[str, str]:
    """The options that check everything."""
    return {"sslmode": "verify-full", "sslrootcert": server.file("ca.pem")}


def session(url: str) -> tuple[str, bool, bool]:
    """Who the server says we are, whether by TLS, and whether by a certificate."""
    query = "SELECT current_user, ssl, client_serial FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    with closing(open_store(url, application_name="gasp-test")) as store, store._database.read() as connection:
        user, by_tls, certificate = connection.exec_driver_sql(query).one()
        return user, by_tls, certificate is not None


def refusal(url: str) -> str:
    """What a store says of a URL that never gets a connection. No secret is in it."""
    with closing(open_store(url, application_name="gasp-test")) as store, pytest.raises(StoreNotReady) as raised:
        store.server.ping()
    assert not any(secret in f"{raised.value} {raised.value!r}" for secret in SECRETS)
    return str(raised.value)


def test_a_password_goes_to_a_server_whose_certificate_and_name_are_checked(
    server: TlsPostgres, verified: dict[str, str]
) -> None:
    assert session(server.url(**verified)) == (USER, True, False)


def test_a_password_may_stand_in_the_query_as_well(server: TlsPostgres, verified: dict[str, str]) -> None:
    assert session(server.url(password="", **verified) + f"&password={PASSWORD}") == (USER, True, False)


@pytest.mark.parametrize(
    "key", [{"sslkey": "client-key.pem"}, {"sslkey": "client-locked-key.pem", "sslpassword": KEY_PASSWORD}]
)
def test_a_certificate_takes_the_place_of_a_password(
    server: TlsPostgres, verified: dict[str, str], key: dict[str, str]
) -> None:
    key = key | {"sslkey": server.file(key["sslkey"])}
    url = server.url(CLIENT, "", **verified, sslcert=server.file("client.pem"), **key)
    assert session(url) == (CLIENT, True, True)


def test_migrations_run_over_tls(server: TlsPostgres, verified: dict[str, str]) -> None:
    upgrade(server.url(**verified))
    with closing(open_store(server.url(**verified), application_name="gasp-test")) as store:
        assert store.server.schema().revision == head_revision()


def test_another_authority_is_refused_for_good(server: TlsPostgres) -> None:
    message = refusal(server.url(sslmode="verify-full", sslrootcert=server.file("other-ca.pem")))
    assert "certificate verify failed" in message
    assert "look at sslmode and sslrootcert in GASP_DATABASE_URL" in message


def test_the_host_name_is_checked_by_verify_full_alone(server: TlsPostgres, verified: dict[str, str]) -> None:
    assert "does not match host name" in refusal(server.url(host="127.0.0.1", **verified))
    by_authority = verified | {"sslmode": "verify-ca"}
    assert session(server.url(host="127.0.0.1", **by_authority)) == (USER, True, False)


def test_a_connection_without_tls_is_refused_by_the_server(server: TlsPostgres) -> None:
    message = refusal(server.url(sslmode="disable"))
    assert "no encryption; look at sslmode in GASP_DATABASE_URL" in message


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_a_server_without_tls_is_refused_where_tls_is_required(server: TlsPostgres, mode: str) -> None:
    url = server.url(sslmode=mode, sslrootcert=server.file("ca.pem"))
    server.set_tls(on=False)
    try:
        assert "server does not support SSL" in refusal(url)
    finally:
        server.set_tls(on=True)
    assert session(url) == (USER, True, False)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"sslcert": "stranger.pem", "sslkey": "stranger-key.pem"}, "look at sslcert and sslkey"),
        ({"sslcert": "client.pem", "sslkey": "stranger-key.pem"}, "look at sslcert and sslkey"),
        ({"sslcert": "client.pem", "sslkey": "no-such-key.pem"}, "look at sslcert and sslkey"),
        ({}, "look at sslcert and sslkey"),
        ({"sslrootcert": "no-such-ca.pem"}, "look at sslmode and sslrootcert"),
        ({"sslrootcert": "client-key.pem"}, "look at sslmode and sslrootcert"),
        ({"sslmode": "verify-everything"}, "look at sslmode"),
        ({"sslrootcrt": "ca.pem"}, "look at the options"),
        ({"ssl_min_protocol_version": "TLSv9"}, "look at the options"),
    ],
)
def test_an_option_that_never_works_is_named(
    server: TlsPostgres, verified: dict[str, str], options: dict[str, str], remedy: str
) -> None:
    named = {name: server.file(value) if value.endswith(".pem") else value for name, value in options.items()}
    assert remedy in refusal(server.url(CLIENT, "", **verified | named))


def test_a_wrong_key_password_is_refused_and_not_shown(server: TlsPostgres, verified: dict[str, str]) -> None:
    key = {"sslkey": server.file("client-locked-key.pem"), "sslpassword": WRONG_PASSWORD}
    url = server.url(CLIENT, "", **verified, sslcert=server.file("client.pem"), **key)
    assert "look at sslcert and sslkey" in refusal(url)


@pytest.mark.parametrize("password", [WRONG_PASSWORD, ""])
def test_a_wrong_password_is_refused_and_not_shown(
    server: TlsPostgres, verified: dict[str, str], password: str
) -> None:
    assert "look at user, password and database in GASP_DATABASE_URL" in refusal(
        server.url(password=password, **verified)
    )


def test_a_migration_that_is_refused_does_not_show_the_password(server: TlsPostgres) -> None:
    with pytest.raises(MigrationError, match="certificate verify failed") as raised:
        upgrade(server.url(sslmode="verify-full", sslrootcert=server.file("other-ca.pem")))
    assert PASSWORD not in str(raised.value)
    with pytest.raises(MigrationError, match="password authentication failed") as raised:
        upgrade(server.url(password=WRONG_PASSWORD))
    assert WRONG_PASSWORD not in str(raised.value)


@pytest.mark.parametrize("command", ["migrate", "status"])
def test_no_command_shows_a_wrong_password(
    server: TlsPostgres, verified: dict[str, str], tmp_path: Path, command: str
) -> None:
    (tmp_path / "gasp_database_url").write_text(server.url(password=WRONG_PASSWORD, **verified))
    settings = {
        "GASP_SECRETS_DIR": str(tmp_path),
        "GASP_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "GASP_LOG_LEVEL": "debug",
    }
    done = subprocess.run(
        [WORKER, command], env=os.environ | settings, capture_output=True, text=True, timeout=90, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "password authentication failed" in said
    assert WRONG_PASSWORD not in said


@pytest.mark.usefixtures("impatient")
def test_check_says_what_is_wrong_and_shows_no_password(server: TlsPostgres, verified: dict[str, str]) -> None:
    given: dict[str, object] = {"kafka_bootstrap_servers": "127.0.0.1:1", "model": "no/such-model"}
    findings = list(check_setup(given | {"database_url": server.url(password=WRONG_PASSWORD, **verified)}))
    (database,) = [finding for finding in findings if finding.part == "database"]
    assert "password authentication failed" in str(database.problem)
    assert WRONG_PASSWORD not in repr(findings)
