"""Opening kafka-python's clients, and its errors in our words."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka import TopicPartition, errors
from kafka.net.compat import KafkaNetClient

from worker.broker.connections import Connections, TlsWantedError, hung_up, lasting_fault
from worker.broker.errors import BrokerError, BrokerMisconfigured, BrokerUnavailable
from worker.broker.sockets import DIRECT, AddressUnknownError, Loop

T = TypeVar("T")

# How long an unreachable broker may hold up whoever opens a client.
OPEN_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 10.0

# What to do about a broker that is away, in the words that end a message.
AWAY = "look at the broker in GASP_KAFKA_BOOTSTRAP_SERVERS"
_UNKNOWN_HOST = "look at GASP_KAFKA_BOOTSTRAP_SERVERS, the broker's advertised.listeners and the name server"

_REMEDIES: dict[type[Exception], str] = {
    errors.SaslAuthenticationFailedError: (
        "the broker refused the user or password; look at GASP_KAFKA_SASL_USERNAME and GASP_KAFKA_SASL_PASSWORD"
    ),
    errors.UnsupportedSaslMechanismError: (
        "the broker does not offer this SASL mechanism; look at GASP_KAFKA_SASL_MECHANISM"
    ),
    errors.IllegalSaslStateError: "this address takes no user and password; look at GASP_KAFKA_SECURITY_PROTOCOL",
    errors.TopicAuthorizationFailedError: (
        "not allowed to use the topic; give this user the ACLs Describe and Read on it, or Write to send"
    ),
    errors.GroupAuthorizationFailedError: (
        "not allowed to use the consumer group; give this user the ACL Read on GASP_CONSUMER_GROUP"
    ),
    errors.AuthorizationError: (
        "not allowed; give this user the ACL on the cluster: IdempotentWrite to send, Create for topics"
    ),
    errors.InvalidSessionTimeoutError: (
        "GASP_SESSION_TIMEOUT_S is outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    errors.InconsistentGroupProtocolError: (
        "something else uses this consumer group, or a worker of another version; look at GASP_CONSUMER_GROUP"
    ),
    errors.FencedInstanceIdError: (
        "another worker has the same GASP_INSTANCE_ID; give each its own, or none, and end one of the two"
    ),
    errors.GroupMaxSizeReachedError: "the consumer group is full: run fewer workers, or raise group.max.size",
    errors.InvalidGroupIdError: "the name of the consumer group is not valid; look at GASP_CONSUMER_GROUP",
    errors.InvalidTopicError: "the topic's name is not valid; look at GASP_TOPIC and GASP_DEAD_LETTER_TOPIC",
    errors.UnsupportedCodecError: (
        "records are compressed in a way that this client has no library for; install gasp-audit with its dependencies"
    ),
    errors.UnsupportedVersionError: "the broker is too old for this client; upgrade it",
    errors.KafkaConfigurationError: "a Kafka setting is wrong; look at GASP_KAFKA_*",
    TlsWantedError: "this address speaks TLS; look at GASP_KAFKA_SECURITY_PROTOCOL",
    ssl.SSLCertVerificationError: (
        "the broker's certificate does not pass; look at GASP_KAFKA_SSL_CAFILE and at the host name"
    ),
    ssl.SSLError: "TLS does not come about; look at the files in GASP_KAFKA_SSL_*",
    FileNotFoundError: "a file of the TLS settings is missing; look at GASP_KAFKA_SSL_*",
}


def connection_settings(
    bootstrap: str,
    client_id: str,
    security: Mapping[str, object] | None,
    *,
    open_timeout_s: float | None = None,
    request_timeout_s: float = REQUEST_TIMEOUT_S,
) -> dict[str, Any]:
    """What every client of ours is opened with.

    ``security`` holds kafka-python's ``security_protocol``, ``ssl_*`` and ``sasl_*`` settings. Raises
    BrokerMisconfigured if it holds any other.
    """
    strange = [name for name in security or {} if not name.startswith(("security_protocol", "ssl_", "sasl_"))]
    if strange:
        raise BrokerMisconfigured(f"not a security setting: {', '.join(sorted(strange))}")
    return {
        "bootstrap_servers": bootstrap,
        "client_id": client_id,
        "bootstrap_timeout_ms": int(time_to_open(open_timeout_s) * 1000),
        "request_timeout_ms": int(request_timeout_s * 1000),
        # The default lets a client sleep half a minute after the broker is back.
        "reconnect_backoff_max_ms": 2_000,
        "proxy_url": DIRECT,
        **(security or {}),
    }


def time_to_open(chosen_s: float | None) -> float:
    """How many seconds a broker has to answer whoever opens a client: OPEN_TIMEOUT_S if none are chosen."""
    return OPEN_TIMEOUT_S if chosen_s is None else chosen_s


def open_client(kind: Callable[..., T], settings: Mapping[str, Any]) -> tuple[T, KafkaNetClient]:
    """Build one of kafka-python's clients; return it with the network client inside it.

    kafka-python leaves a thread and sockets behind when a constructor fails, and does not pass
    ``allow_auto_create_topics`` on to where it counts; both are put right here, through the hook ``kafka_client``.
    Raises BrokerUnavailable or BrokerMisconfigured.
    """
    opened: list[KafkaNetClient] = []
    made: list[Connections] = []

    def network_client(**config: object) -> KafkaNetClient:
        net = Loop(**config)
        connections = Connections(net, **config)
        client = KafkaNetClient(net=net, manager=connections)
        client.cluster.config["allow_auto_create_topics"] = False
        made.append(connections)
        opened.append(client)
        return client

    try:
        return kind(**settings, kafka_client=network_client), opened[0]
    except Exception as error:
        for client in opened:
            client.close()
        action = f"cannot connect to Kafka at {settings['bootstrap_servers']}"
        if isinstance(error, (ValueError, TypeError)) and not is_understood(error):
            raise BrokerMisconfigured(f"{action}: look at GASP_KAFKA_BOOTSTRAP_SERVERS and GASP_KAFKA_*") from error
        if isinstance(error, errors.KafkaTimeoutError):
            raise _unanswered(made, error, action) from error
        raise broker_error(error, action) from error


def _unanswered(made: Sequence[Connections], error: Exception, action: str) -> BrokerError:
    """Why no broker answered in time, as far as the connections tell."""
    for connections in made:
        if connections.unknown_host is not None:
            return broker_error(connections.unknown_host, action)
    if any(hung_up(connections.last_fault) for connections in made):
        return BrokerUnavailable(f"{action}: it hangs up; is GASP_KAFKA_SECURITY_PROTOCOL the one of this address?")
    return broker_error(error, action)


def broker_error(error: Exception, action: str) -> BrokerError:
    """``error`` as one of ours, with ``action`` (``cannot …``) and the remedy in its message.

    What is not known to need a person counts as transient. Only the error's type is named: kafka-python quotes
    the bytes of a record that it fails to decode.
    """
    error = lasting_fault(error) or error
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind):
            return BrokerMisconfigured(f"{action}: {remedy} ({_named(error)})")
    if isinstance(error, AddressUnknownError):
        return BrokerUnavailable(f"{action}: no address is known of the host {error.host}; {_UNKNOWN_HOST}")
    if isinstance(error, errors.KafkaTimeoutError):
        message = (
            f"{action}: no answer in time; is it running, and are GASP_KAFKA_BOOTSTRAP_SERVERS and security right?"
        )
        return BrokerUnavailable(message)
    return BrokerUnavailable(f"{action} ({type(error).__name__}); {AWAY}")


def _named(error: Exception) -> str:
    """The error's type, and what OpenSSL says of its reason."""
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None)
    return f"{type(error).__name__}: {reason}" if isinstance(error, ssl.SSLError) and reason else type(error).__name__


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise what kafka-python raises inside as one of ours. ``action`` reads ``cannot …``."""
    try:
        yield
    except (errors.KafkaError, OSError) as error:
        raise broker_error(error, action) from error


def asked_offsets(
    ask: Callable[[Sequence[TopicPartition], int], dict[TopicPartition, int]],
    places: Sequence[TopicPartition],
    timeout_ms: int,
) -> dict[TopicPartition, int]:
    """What a consumer's ``beginning_offsets`` or ``end_offsets`` answers about ``places``. Raises BrokerUnavailable."""
    try:
        return ask(places, timeout_ms)
    except KeyError as error:
        # kafka-python does not ask about a partition whose leader it does not know yet, and then misses the answer.
        raise BrokerUnavailable("a partition has no leader yet, such as one that was just added") from error


def is_understood(error: Exception) -> bool:
    """Whether ``error`` says by its type what is wrong: a transient fault of the broker or one with a remedy."""
    return isinstance(error, (errors.RetriableError, *_REMEDIES))
