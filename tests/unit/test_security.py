"""The security of the connections to Kafka: which settings make sense, and what the clients are given."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from kafka import errors
from pydantic import SecretStr

from worker.broker.client import connection_settings
from worker.broker.connections import PlainTransport, TlsWantedError, hung_up, lasting_fault
from worker.errors import SettingsError
from worker.settings.security import UNSECURED, kafka_security, security_warning
from worker.settings.settings import Settings, read_settings

NEEDED = {"database_url": "postgresql://h/d", "kafka_bootstrap_servers": "h:1"}
LOGIN = {
    "kafka_security_protocol": "SASL_SSL",
    "kafka_sasl_mechanism": "PLAIN",
    "kafka_sasl_username": "auditor",
    "kafka_sasl_password": "s3cret",
}


def settings(**given: object) -> Settings:
    return read_settings(**NEEDED | given)


def wrong_lines(**given: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        settings(**given)
    return str(caught.value).splitlines()


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    path = tmp_path / "some.pem"
    path.write_text("PEM")
    return path


def test_without_settings_a_client_is_told_to_use_neither_tls_nor_a_password() -> None:
    assert kafka_security(settings()) == {"security_protocol": "PLAINTEXT"}


def test_tls_alone_trusts_what_the_machine_trusts_and_checks_the_host_name() -> None:
    assert kafka_security(settings(kafka_security_protocol="SSL")) == {
        "security_protocol": "SSL",
        "ssl_cafile": None,
        "ssl_certfile": None,
        "ssl_keyfile": None,
        "ssl_password": "",
        "ssl_check_hostname": True,
    }


def test_everything_that_is_set_reaches_the_client(pem: Path) -> None:
    files = {f"kafka_ssl_{name}": pem for name in ("cafile", "certfile", "keyfile")}
    given = settings(**LOGIN, **files, kafka_ssl_password="0pen", kafka_ssl_check_hostname=False)
    assert kafka_security(given) == {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(pem),
        "ssl_certfile": str(pem),
        "ssl_keyfile": str(pem),
        "ssl_password": "0pen",
        "ssl_check_hostname": False,
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "auditor",
        "sasl_plain_password": "s3cret",
    }


def test_a_login_without_tls_carries_no_settings_of_tls() -> None:
    found = kafka_security(settings(**LOGIN | {"kafka_security_protocol": "SASL_PLAINTEXT"}))
    assert not [name for name in found if name.startswith("ssl_")]
    assert found["sasl_plain_password"] == "s3cret"


def test_every_name_is_one_that_the_clients_take(pem: Path) -> None:
    found = kafka_security(settings(**LOGIN, kafka_ssl_cafile=pem))
    assert connection_settings("h:1", "me", found).items() >= found.items()


@pytest.mark.parametrize(
    ("name", "value"), [("mechanism", None), ("username", None), ("username", ""), ("password", None), ("password", "")]
)
@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
def test_a_login_that_lacks_a_part_names_it(name: str, protocol: str, value: str | None) -> None:
    (line,) = wrong_lines(**LOGIN | {"kafka_security_protocol": protocol, f"kafka_sasl_{name}": value})
    assert line.startswith(f"GASP_KAFKA_SASL_{name.upper()}: ")
    assert f"needed with GASP_KAFKA_SECURITY_PROTOCOL={protocol}" in line


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_login_that_would_not_be_used_is_refused(protocol: str) -> None:
    lines = wrong_lines(**LOGIN | {"kafka_security_protocol": protocol})
    assert [line.split(":")[0] for line in lines] == [
        "GASP_KAFKA_SASL_MECHANISM",
        "GASP_KAFKA_SASL_USERNAME",
        "GASP_KAFKA_SASL_PASSWORD",
    ]
    assert "s3cret" not in "".join(lines)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_tls_files_that_would_not_be_used_are_refused(protocol: str, pem: Path) -> None:
    login = LOGIN if protocol.startswith("SASL") else {}
    (line,) = wrong_lines(**login | {"kafka_security_protocol": protocol, "kafka_ssl_cafile": pem})
    assert line.startswith("GASP_KAFKA_SSL_CAFILE: ")
    assert "no effect without TLS" in line


@pytest.mark.parametrize("name", ["kafka_ssl_certfile", "kafka_ssl_keyfile"])
def test_a_certificate_and_its_key_are_needed_together(name: str, pem: Path) -> None:
    (line,) = wrong_lines(**{"kafka_security_protocol": "SSL", name: pem})
    assert "GASP_KAFKA_SSL_CERTFILE and GASP_KAFKA_SSL_KEYFILE are needed together" in line


def test_a_key_password_without_a_key_is_refused() -> None:
    (line,) = wrong_lines(kafka_security_protocol="SSL", kafka_ssl_password="s3cret")
    assert line.startswith("GASP_KAFKA_SSL_PASSWORD: ")
    assert "s3cret" not in line


@pytest.mark.parametrize("name", ["cafile", "certfile", "keyfile"])
@pytest.mark.parametrize("path", ["no-such.pem", "."])
def test_a_file_that_cannot_be_read_is_named_by_its_variable(name: str, path: str, tmp_path: Path) -> None:
    lines = wrong_lines(**{"kafka_security_protocol": "SSL", f"kafka_ssl_{name}": tmp_path / path})
    assert lines[0].startswith(f"GASP_KAFKA_SSL_{name.upper()}: ")
    assert "the file cannot be read" in lines[0]


def test_a_key_that_was_pasted_in_place_of_its_path_is_not_repeated() -> None:
    lines = wrong_lines(kafka_security_protocol="SSL", kafka_ssl_keyfile="-----BEGIN PRIVATE KEY-----s3cret")
    assert lines
    assert "s3cret" not in "".join(lines)


def test_an_unknown_mechanism_is_refused_with_those_there_are() -> None:
    (line,) = wrong_lines(**LOGIN | {"kafka_sasl_mechanism": "GSSAPI"})
    assert line.startswith("GASP_KAFKA_SASL_MECHANISM: ")
    assert "'SCRAM-SHA-512'" in line


def test_an_unknown_protocol_is_refused_with_those_there_are() -> None:
    (line,) = wrong_lines(kafka_security_protocol="TLS")
    assert line.startswith("GASP_KAFKA_SECURITY_PROTOCOL: ")
    assert "'SASL_SSL'" in line


def test_the_embedded_broker_is_reached_in_the_clear_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in LOGIN.items():
        monkeypatch.setenv(f"GASP_{name.upper()}", value)
    assert kafka_security(settings()) != {"security_protocol": "PLAINTEXT"}
    assert kafka_security(settings(**UNSECURED)) == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({}, None),
        ({"kafka_security_protocol": "SSL"}, None),
        (LOGIN, None),
        (LOGIN | {"kafka_security_protocol": "SASL_PLAINTEXT"}, "unencrypted"),
        ({"kafka_security_protocol": "SSL", "kafka_ssl_check_hostname": False}, "host names are not checked"),
    ],
)
def test_what_is_allowed_but_weak_is_warned_of(given: dict[str, object], warning: str | None) -> None:
    found = security_warning(settings(**given))
    assert found is None if warning is None else warning in str(found)


def test_secrets_are_not_shown(pem: Path) -> None:
    files = {"kafka_ssl_certfile": pem, "kafka_ssl_keyfile": pem}
    given = settings(**LOGIN, **files, kafka_ssl_password="s3cret-of-the-key")
    assert "s3cret" not in f"{given!r} {given!s} {given.model_dump()} {given.model_dump_json()}"
    assert isinstance(given.kafka_sasl_password, SecretStr)


def wrapped(cause: Exception) -> Exception:
    """As a connection raises it."""
    error: Exception = errors.KafkaConnectionError("no TLS connection")
    error.__cause__ = cause
    return error


def test_a_fault_that_lasts_is_found_behind_what_wraps_it() -> None:
    fault = ssl.SSLCertVerificationError()
    assert lasting_fault(fault) is fault
    assert lasting_fault(wrapped(fault)) is fault
    assert lasting_fault(errors.KafkaConnectionError(fault)) is fault


@pytest.mark.parametrize(
    "error",
    [
        errors.KafkaConnectionError("111 ECONNREFUSED"),
        errors.KafkaTimeoutError(),
        wrapped(ssl.SSLEOFError()),
        wrapped(ssl.SSLZeroReturnError()),
        wrapped(ConnectionResetError()),
    ],
)
def test_a_broker_that_is_away_is_no_lasting_fault(error: Exception) -> None:
    assert lasting_fault(error) is None


def test_hanging_up_differs_from_not_being_there() -> None:
    assert hung_up(errors.KafkaConnectionError("socket disconnected"))
    assert hung_up(wrapped(ssl.SSLEOFError()))
    assert not hung_up(errors.KafkaConnectionError("111 ECONNREFUSED"))
    assert not hung_up(None)


def test_what_a_broker_says_before_it_hangs_up_is_heard() -> None:
    broker, ours = socket.socketpair()
    with broker, ours:
        ours.settimeout(0)
        transport = PlainTransport(None, ours)
        broker.sendall(b"wrong password")
        broker.close()
        assert transport._sock_recv() == (b"wrong password", None)
        received, error = transport._sock_recv()
        assert received == b""
        assert hung_up(error)


def test_only_the_first_answer_is_looked_at_for_tls() -> None:
    broker, ours = socket.socketpair()
    with broker, ours:
        ours.settimeout(0)
        transport = PlainTransport(None, ours)
        broker.sendall(b"\x00\x00")
        assert transport._sock_recv() == (b"\x00\x00", None)
        broker.sendall(b"\x15\x03\x03")
        assert transport._sock_recv() == (b"\x15\x03\x03", None)
        broker.sendall(b"\x15\x03\x03")
        _, error = PlainTransport(None, ours)._sock_recv()
        assert isinstance(error, TlsWantedError)
