"""A Kafka that is reached over TLS, with certificates, users and passwords."""

from __future__ import annotations

import json
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.apache_kafka import ApacheKafka, KafkaCannotRun, Listener, apache_kafka
from tests.brokers import Broker, Group
from tests.certificates import KEY_PASSWORD, write_certificates
from tests.exchanges import write_exchanges
from tests.models import save_model
from tests.workers import Deployment
from worker.broker.admin import BrokerAdmin, NewTopic, ping
from worker.broker.errors import BrokerError, BrokerMisconfigured, BrokerUnavailable
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.commands.check import _broker, check_setup
from worker.settings.security import kafka_security
from worker.settings.settings import read_settings

USER = "auditor"
PASSWORD = "s3cret-of-the-auditor"
NO_HOST = "no-such-host.invalid"
WRONG_PASSWORD = "wr0ng-and-still-private"
SECRETS = (PASSWORD, WRONG_PASSWORD, KEY_PASSWORD)
# A wrong setting is told before a client that keeps trying would give up.
SOON_S = 2.5
LARGE = b"\x00\xff" * 400_000

_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
_LOGIN = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "plain.sasl.jaas.config": _PLAIN,
    "scram-sha-256.sasl.jaas.config": _SCRAM,
    "scram-sha-512.sasl.jaas.config": _SCRAM,
}


def listeners(files: Path) -> list[Listener]:
    """The ways in. All have a certificate for localhost."""
    authority = (files / "ca.pem").read_text()
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": (files / "server-key.pem").read_text(),
        "ssl.keystore.certificate.chain": (files / "server.pem").read_text(),
    }
    mutual = {"ssl.client.auth": "required", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority}
    return [
        Listener("TLS", "SSL", settings=tls),
        Listener("MUTUAL", "SSL", settings=tls | mutual),
        Listener("LOGIN", "SASL_SSL", settings=tls | _LOGIN),
        Listener("BARE_LOGIN", "SASL_PLAINTEXT", settings=_LOGIN),
        Listener("MISNAMED", "SSL", advertised="127.0.0.1", settings=tls),
        Listener("LOST", "PLAINTEXT", advertised=NO_HOST),
    ]


@dataclass(frozen=True, slots=True)
class Secured:
    """A node and the certificates around it."""

    node: ApacheKafka
    files: Path

    def settings(self, listener: str, **settings: object) -> dict[str, object]:
        """What an operator would set for a listener; names of certificates become paths."""
        named = {
            name: self.files / str(value) if str(value).endswith(".pem") else value for name, value in settings.items()
        }
        return {"kafka_bootstrap_servers": self.address(listener), **named}

    def address(self, listener: str) -> str:
        """Where a listener listens; PLAINTEXT is the one without any security."""
        return self.node.bootstrap if listener == "PLAINTEXT" else self.node.addresses[listener]

    def security(self, listener: str, **settings: object) -> tuple[str, dict[str, object]]:
        """Bootstrap address and security, by way of the settings."""
        read = read_settings(database_url="postgresql://h/d", **self.settings(listener, **settings))
        return read.kafka_bootstrap_servers, kafka_security(read)


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    """One node for all of these tests, with a listener for each way in."""
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gasp-tls-")))
        write_certificates(files)
        users = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
        try:
            node = stack.enter_context(apache_kafka(listeners(files), users))
        except KafkaCannotRun as error:
            pytest.skip(f"Apache Kafka cannot run here: {error}")
        yield Secured(node, files)


TLS = {"kafka_security_protocol": "SSL", "kafka_ssl_cafile": "ca.pem"}
MUTUAL = TLS | {"kafka_ssl_certfile": "client.pem", "kafka_ssl_keyfile": "client-key.pem"}
LOCKED = MUTUAL | {"kafka_ssl_keyfile": "client-locked-key.pem", "kafka_ssl_password": KEY_PASSWORD}
USER_AND_PASSWORD = {
    "kafka_sasl_mechanism": "SCRAM-SHA-512",
    "kafka_sasl_username": USER,
    "kafka_sasl_password": PASSWORD,
}
LOGIN = TLS | USER_AND_PASSWORD | {"kafka_security_protocol": "SASL_SSL"}

WAYS_IN = [
    pytest.param("TLS", TLS, id="tls"),
    pytest.param("MUTUAL", MUTUAL, id="mutual tls"),
    pytest.param("MUTUAL", LOCKED, id="mutual tls with an encrypted key"),
    pytest.param("LOGIN", LOGIN | {"kafka_sasl_mechanism": "PLAIN"}, id="plain over tls"),
    pytest.param("LOGIN", LOGIN | {"kafka_sasl_mechanism": "SCRAM-SHA-256"}, id="scram 256 over tls"),
    pytest.param("LOGIN", LOGIN, id="scram 512 over tls"),
    pytest.param(
        "BARE_LOGIN", USER_AND_PASSWORD | {"kafka_security_protocol": "SASL_PLAINTEXT"}, id="scram without tls"
    ),
]


@pytest.mark.kafka
@pytest.mark.parametrize(("listener", "settings"), WAYS_IN)
def test_every_client_works_through_a_secured_listener(
    secured: Secured, listener: str, settings: dict[str, object]
) -> None:
    bootstrap, security = secured.security(listener, **settings)
    topic = f"secured-{uuid.uuid4().hex[:8]}"
    with BrokerAdmin(bootstrap, security=security) as admin:
        assert admin.create_topics([NewTopic(topic, 1)]).created == (topic,)
        assert admin.ping().brokers == 1
    with RecordSink(bootstrap, security=security) as sink:
        for number in range(20):
            sink.send(topic, b"%d" % number, key=b"%d" % number)
        sink.send(topic, LARGE)
        sink.flush(20)
    members = Group(lambda: RecordSource(bootstrap, topic, f"of-{topic}", session_timeout_ms=6_000, security=security))
    with closing(members) as group:
        source = group.join()
        group.run(until=lambda: len(group.records) >= 21)
        source.commit(group.positions)
    assert group.values() == [*(b"%d" % number for number in range(20)), LARGE]


@pytest.mark.kafka
def test_a_source_that_was_let_in_goes_on_when_the_broker_is_back(secured: Secured) -> None:
    bootstrap, security = secured.security("LOGIN", **LOGIN)
    topic = Broker("secured", secured.node.bootstrap, 6_000).create_topic()
    members = Group(lambda: RecordSource(bootstrap, topic, f"of-{topic}", session_timeout_ms=6_000, security=security))
    with closing(members) as group, RecordSink(bootstrap, security=security) as sink:
        group.join()
        sink.send(topic, b"before")
        group.run(until=lambda: group.values() == [b"before"])
        secured.node.kill()
        secured.node.start()
        sink.send(topic, b"after")
        group.run(until=lambda: group.values() == [b"before", b"after"])


@pytest.mark.kafka
def test_a_broker_that_sends_us_on_to_an_unknown_host_is_told_as_that(secured: Secured) -> None:
    with (
        BrokerAdmin(secured.address("LOST"), timeout_s=2) as admin,
        pytest.raises(BrokerUnavailable, match=rf"no address is known of the host {NO_HOST}; .*advertised\.listeners"),
    ):
        admin.topic_partitions("some-topic")


@pytest.mark.parametrize("bootstrap", [f"{NO_HOST}:9092", f"127.0.0.1:1,{NO_HOST}:9092"])
def test_an_unknown_host_among_the_first_brokers_is_named(bootstrap: str) -> None:
    with pytest.raises(BrokerUnavailable, match=rf"no address is known of the host {NO_HOST}; "):
        ping(bootstrap, timeout_s=2)


WRONG = [
    pytest.param("TLS", TLS | {"kafka_ssl_cafile": "other-ca.pem"}, "CAFILE.*local issuer", id="another authority"),
    pytest.param("TLS", {"kafka_security_protocol": "SSL"}, "CAFILE", id="an authority this machine does not trust"),
    pytest.param("TLS", TLS | {"kafka_ssl_cafile": "client-key.pem"}, "SSL_.*NO_CERTIFICATE", id="no certificate"),
    pytest.param("MISNAMED", TLS, "host name.*127.0.0.1", id="the name of the next broker"),
    pytest.param("MUTUAL", TLS, "files in GASP_KAFKA_SSL", id="no certificate of ours"),
    pytest.param(
        "MUTUAL",
        TLS | {"kafka_ssl_certfile": "stranger.pem", "kafka_ssl_keyfile": "stranger-key.pem"},
        "files in GASP_KAFKA_SSL",
        id="a certificate that the broker does not trust",
    ),
    pytest.param(
        "MUTUAL", MUTUAL | {"kafka_ssl_keyfile": "stranger-key.pem"}, "MISMATCH", id="the key of another certificate"
    ),
    pytest.param("MUTUAL", LOCKED | {"kafka_ssl_password": WRONG_PASSWORD}, "files in", id="a wrong key password"),
    pytest.param("MUTUAL", LOCKED | {"kafka_ssl_password": None}, "files in", id="no key password"),
    *(
        pytest.param(
            listener,
            LOGIN | {"kafka_sasl_mechanism": mechanism, "kafka_sasl_password": WRONG_PASSWORD} | protocol,
            "refused the user or password.*GASP_KAFKA_SASL_PASSWORD",
            id=f"a wrong password on {listener} with {mechanism}",
        )
        for listener, protocol in (
            ("LOGIN", {}),
            ("BARE_LOGIN", {"kafka_security_protocol": "SASL_PLAINTEXT", "kafka_ssl_cafile": None}),
        )
        for mechanism in ("PLAIN", "SCRAM-SHA-512")
    ),
    pytest.param("LOGIN", LOGIN | {"kafka_sasl_username": "nobody"}, "refused the user", id="an unknown user"),
    pytest.param("TLS", LOGIN, "takes no user.*SECURITY_PROTOCOL", id="a password where none is asked for"),
    pytest.param("TLS", {}, "speaks TLS.*SECURITY_PROTOCOL", id="plain at a tls port"),
    pytest.param("LOGIN", {}, "speaks TLS.*SECURITY_PROTOCOL", id="plain at a port of both"),
]


@pytest.mark.kafka
@pytest.mark.parametrize(("listener", "settings", "remedy"), WRONG)
def test_a_setting_that_never_works_is_named_at_once_and_no_secret_is(
    secured: Secured, listener: str, settings: dict[str, object], remedy: str
) -> None:
    bootstrap, security = secured.security(listener, **settings)
    started = time.monotonic()
    with pytest.raises(BrokerMisconfigured, match=remedy) as caught:
        ping(bootstrap, security=security)
    assert time.monotonic() - started < SOON_S
    assert no_secret_in(caught.value)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        pytest.param("LOGIN", TLS, id="no user and password where they are asked for"),
        pytest.param("PLAINTEXT", TLS, id="tls at a plain port"),
        pytest.param("PLAINTEXT", LOGIN, id="both at a plain port"),
    ],
)
def test_a_broker_that_only_hangs_up_is_unavailable_and_the_protocol_is_named(
    secured: Secured, listener: str, settings: dict[str, object]
) -> None:
    bootstrap, security = secured.security(listener, **settings)
    with pytest.raises(BrokerUnavailable, match=r"hangs up.*GASP_KAFKA_SECURITY_PROTOCOL") as caught:
        ping(bootstrap, timeout_s=1, security=security)
    assert no_secret_in(caught.value)


@pytest.mark.kafka
def test_sources_and_sinks_refuse_a_wrong_authority_as_the_others_do(secured: Secured) -> None:
    bootstrap, security = secured.security("TLS", **TLS | {"kafka_ssl_cafile": "other-ca.pem"})
    with pytest.raises(BrokerMisconfigured, match="CAFILE"):
        RecordSource(bootstrap, "topic", "group", security=security)
    with pytest.raises(BrokerMisconfigured, match="CAFILE"):
        RecordSink(bootstrap, security=security)


@pytest.mark.kafka
def test_the_host_name_is_checked_unless_that_is_switched_off(secured: Secured) -> None:
    _, security = secured.security("MISNAMED", **TLS, kafka_ssl_check_hostname=False)
    by_address = secured.address("MISNAMED").replace("localhost", "127.0.0.1")
    assert ping(by_address, security=security).brokers == 1
    with pytest.raises(BrokerMisconfigured, match=r"not valid for .127\.0\.0\.1."):
        ping(by_address, security=security | {"ssl_check_hostname": True})


@pytest.mark.kafka
def test_one_good_address_is_enough(secured: Secured) -> None:
    bootstrap, security = secured.security("TLS", **TLS)
    misnamed = bootstrap.replace("localhost", "127.0.0.1")
    for _ in range(4):
        assert ping(f"{misnamed},{bootstrap}", security=security).brokers == 1


@pytest.mark.kafka
def test_refused_connections_leave_no_socket_behind(secured: Secured) -> None:
    bootstrap, security = secured.security("TLS", **TLS | {"kafka_ssl_cafile": "other-ca.pem"})
    before = psutil.Process().num_fds()
    for _ in range(3):
        with pytest.raises(BrokerMisconfigured):
            ping(bootstrap, security=security)
    assert psutil.Process().num_fds() == before


def test_a_handshake_that_is_never_answered_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(BrokerUnavailable, match="no answer in time"):
        ping(f"127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.5, security={"security_protocol": "SSL"})


@pytest.mark.kafka
def test_the_whole_worker_runs_through_a_secured_listener_with_its_password_in_a_file(
    secured: Secured, database_url: str, tmp_path: Path
) -> None:
    deployment = deploy(secured, database_url, tmp_path, PASSWORD)
    assert deployment.run("topics").stdout.count("exists") == 2
    file = write_exchanges(tmp_path / "in.jsonl", 3, "not json")
    assert "sent 4 messages" in deployment.run("replay", str(file)).stdout
    with deployment.worker():
        deployment.wait_settled(4)
    status = json.loads(deployment.run("status", "--json").stdout)
    assert (status["lag"], status["outcomes"]) == (0, {"scored": 3, "dead_lettered:invalid_json": 1})


@pytest.mark.kafka
def test_no_command_shows_a_secret_when_the_password_is_wrong(
    secured: Secured, database_url: str, tmp_path: Path
) -> None:
    deployment = deploy(secured, database_url, tmp_path, WRONG_PASSWORD)
    file = write_exchanges(tmp_path / "in.jsonl", 1)
    for arguments in (("topics",), ("status",), ("replay", str(file))):
        done = deployment.run(*arguments)
        assert (done.returncode, "GASP_KAFKA_SASL_PASSWORD" in done.stderr) == (2, True), done.stderr
        assert not any(secret in done.stdout + done.stderr for secret in SECRETS)


@pytest.mark.kafka
def test_check_says_what_is_wrong_and_shows_no_secret(secured: Secured) -> None:
    given = {"database_url": "postgresql://h:1/d", "model": "no/such-model"}
    login = secured.settings("LOGIN", **LOGIN | {"kafka_sasl_password": WRONG_PASSWORD})
    findings = list(check_setup(given | login))
    (broker,) = [finding for finding in findings if finding.part == "broker"]
    assert "GASP_KAFKA_SASL_PASSWORD" in str(broker.problem)
    assert not any(secret in repr(findings) for secret in SECRETS)


@pytest.mark.kafka
def test_check_warns_of_a_login_that_anyone_can_listen_to(secured: Secured) -> None:
    topic = Broker("secured", secured.node.bootstrap, 6_000).create_topic()
    letters = Broker("secured", secured.node.bootstrap, 6_000).create_topic()
    topics = {"database_url": "postgresql://h/d", "topic": topic, "dead_letter_topic": letters}
    bare = USER_AND_PASSWORD | {"kafka_security_protocol": "SASL_PLAINTEXT"}
    no_reviews = {"review_tasks_topic": "", "review_labels_topic": ""}
    found = _broker(read_settings(**topics, **no_reviews, **secured.settings("BARE_LOGIN", **bare)))
    assert found.startswith(f"{topic} has 1 partitions")
    assert "unencrypted" in found


def deploy(secured: Secured, database_url: str, folder: Path, password: str) -> Deployment:
    """A worker's set-up on the listener LOGIN; the password is in a file, as Docker and Kubernetes mount it."""
    secrets = folder / "secrets"
    secrets.mkdir()
    (secrets / "gasp_kafka_sasl_password").write_text(f"{password}\n")
    settings = secured.settings("LOGIN", **LOGIN) | {"secrets_dir": secrets, "log_level": "debug"}
    del settings["kafka_sasl_password"]
    broker = Broker("secured", secured.node.bootstrap, session_timeout_ms=6_000)
    return Deployment(broker, database_url, save_model(folder / "tiny"), folder, settings=settings)


def no_secret_in(error: BrokerError) -> bool:
    """Whether neither the error nor what it came from shows a secret."""
    found: BaseException | None = error
    while found is not None:
        if any(secret in f"{found!s} {found!r}" for secret in SECRETS):
            return False
        found = found.__cause__ or found.__context__
    return True
