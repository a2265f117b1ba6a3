"""The connections of kafka-python, secured in time, and with the reason when none can be had.

kafka-python tries again until the time is up, whatever the reason, and then says no more than that. It waits without
limit for the other side of a TLS handshake, forgets the socket of one that failed, and throws away what a broker
says just before it hangs up, such as that a password is wrong.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

from kafka import errors
from kafka.net.connection import KafkaConnection
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from worker.broker.sockets import AddressUnknownError, Loop

# How the first answer of a port begins that speaks TLS and was not spoken to in TLS: an alert.
_TLS_ALERT = b"\x15\x03"


class TlsWantedError(errors.KafkaConnectionError):  # type: ignore[misc]  # kafka-python ships no types
    """A plain connection was answered in TLS."""


# Faults that the same settings meet again, however often they are tried.
_LASTING = (
    TlsWantedError,
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    FileNotFoundError,
    ssl.SSLError,
)
# These are how TLS puts that the other side went away, or was slow.
_PASSING = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Connections(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python ships no types
    """The connections of one client.

    Opening a client raises at once what ``lasting_fault`` finds, if every bootstrap address has such a fault. A client
    that was opened goes on trying. ``last_fault`` is what ended the last connection that was not closed on purpose,
    ``unknown_host`` the last host name among the addresses that nobody knows. The address that is tried next is one
    that has not just failed: kafka-python throws dice, and may not come to the only one that answers in time.
    """

    def __init__(self, net: Loop, **settings: object) -> None:
        super().__init__(net, **settings)
        self._addresses = tuple(self.cluster.bootstrap_brokers())
        self.cluster.bootstrap_brokers = self._next_addresses
        self._lasting: dict[object, Exception] = {}
        self.last_fault: Exception | None = None
        self.unknown_host: AddressUnknownError | None = None

    async def _connect(self, node: Any, conn: KafkaConnection, *arguments: object, **options: object) -> None:  # noqa: ANN401 - kafka-python's broker
        conn.close_future.add_errback(lambda error: self._note(node.node_id, error))
        await super()._connect(node, conn, *arguments, **options)

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> KafkaTCPTransport:  # noqa: ANN401 - as above
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if not self.ssl_enabled:
            return PlainTransport(self._net, sock, host=node.host)
        try:
            transport = TlsTransport(self._net, sock, node.host, self.config)
            await transport.secure(timeout_at)
        except (OSError, errors.KafkaTimeoutError) as error:
            # A kind that kafka-python tries again.
            raise errors.KafkaConnectionError("no TLS connection") from error
        return transport

    def maybe_raise_auth_failure(self, node_id: object) -> None:
        """Raise the address's fault if no bootstrap address is left that is worth another try."""
        addresses = {broker.node_id for broker in self._addresses}
        if node_id in addresses <= self._lasting.keys():
            raise self._lasting[node_id]

    def _next_addresses(self) -> list[Any]:
        """The bootstrap addresses that may be tried the soonest."""
        delays = [self.connection_delay(broker.node_id) for broker in self._addresses]
        return [broker for broker, delay in zip(self._addresses, delays, strict=True) if delay == min(delays)]

    def _note(self, node_id: object, error: Exception) -> None:
        self.last_fault = error
        if isinstance(error, AddressUnknownError):
            self.unknown_host = error
        fault = lasting_fault(error)
        if fault is not None:
            self._lasting[node_id] = fault


class _AllReceived:
    """What came before the end is delivered; the end is met again by the next read."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, error = super()._sock_recv()  # type: ignore[misc]  # of the transport that this is mixed into
        return received, None if received else error


class PlainTransport(_AllReceived, KafkaTCPTransport):  # type: ignore[misc]  # kafka-python ships no types
    """A plain TCP connection, which knows an answer in TLS."""

    _answered = False

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, error = super()._sock_recv()
        if received.startswith(_TLS_ALERT) and not self._answered:
            error = TlsWantedError()
        self._answered = True
        return received, error


class TlsTransport(_AllReceived, KafkaSSLTransport):  # type: ignore[misc]  # kafka-python ships no types
    """A TLS connection on a ``Loop`` whose handshake ends in time; its socket is closed if that fails."""

    def __init__(self, net: Loop, sock: socket.socket, host: str, settings: dict[str, object]) -> None:
        try:
            super().__init__(net, sock, host=host, **settings)
        except BaseException:
            sock.close()
            raise
        net.opened.add(self._sock)

    async def secure(self, timeout_at: float | None) -> None:
        """Shake hands. Raises ssl.SSLError, OSError or KafkaTimeoutError."""
        try:
            while (wanted := self._next_step()) is not None:
                await wanted(self._sock, timeout_at=timeout_at)
        except BaseException:
            self._sock.close()
            raise

    def _next_step(self) -> Any:  # noqa: ANN401 - a wait of kafka-python's loop
        try:
            self._sock.do_handshake()
        except ssl.SSLWantReadError:
            return self._net.wait_read
        except ssl.SSLWantWriteError:
            return self._net.wait_write
        return None


def lasting_fault(error: BaseException) -> Exception | None:
    """The fault behind ``error`` that no trying again can mend, or None."""
    for one in _behind(error):
        if isinstance(one, _LASTING) and not isinstance(one, _PASSING):
            return one
    return None


def hung_up(error: BaseException | None) -> bool:
    """Whether the other side ended a connection that was made, as brokers do when they are spoken to wrongly."""
    kinds = (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
    return error is not None and any(
        isinstance(one, kinds) or "socket disconnected" in str(one) for one in _behind(error)
    )


def _behind(error: BaseException) -> Iterator[Exception]:
    """The error and what it came from: kafka-python wraps an error by raising another one, or as its argument."""
    if isinstance(error, Exception):
        yield error
        for one in (error.__cause__, *error.args):
            if isinstance(one, Exception):
                yield from _behind(one)
