"""The sockets of kafka-python, closed when they should be.

kafka-python leaves a socket to the garbage collector when a connection is refused, which is one or more a second in an
outage, and when a client is closed with something left to write.
"""

from __future__ import annotations

import socket
from typing import Any
from weakref import WeakSet

from kafka import errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector

# kafka-python picks the class of a connection by the scheme of its proxy; this one goes straight to the broker.
DIRECT = "direct://"


class AddressUnknownError(errors.KafkaConnectionError):  # type: ignore[misc]  # kafka-python ships no types
    """No address is known of a broker's host name. ``host`` is the name, from the settings or as a broker told it."""

    def __init__(self, host: str) -> None:
        super().__init__(f"no address is known of the host {host}")
        self.host = host


class Loop(NetworkSelector):  # type: ignore[misc]  # kafka-python ships no types
    """The event loop of one client; it closes the sockets that were opened on it."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        self.opened: WeakSet[socket.socket] = WeakSet()

    def close(self) -> None:
        """End the loop, then close what is left."""
        super().close()
        for one in list(self.opened):
            one.close()


class DirectSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python ships no types
    """A plain TCP connection on a ``Loop``."""

    SCHEMES = ("direct",)

    def dns_lookup(self, host: str, port: int, raise_error: bool = False) -> list[Any]:  # noqa: ARG002, FBT001, FBT002 - as kafka-python has it
        """The addresses of a host. Raises AddressUnknownError instead of going on without any."""
        found: list[Any] = super().dns_lookup(host, port, raise_error=False)
        if not found:
            raise AddressUnknownError(host)
        return found

    async def sock_connect(self, net: Loop, sock: socket.socket, sockaddr: Any, timeout_at: float | None = None) -> Any:  # noqa: ANN401 - as kafka-python has it
        """Connect ``sock``, or close it and raise what kafka-python raises."""
        net.opened.add(sock)
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise
