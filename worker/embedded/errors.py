"""What can go wrong with embedded parts.

EmbeddedError
├── EmbeddedBrokerError     the broker could not be started
└── EmbeddedPostgresError   the server could not be set up, started or asked
"""

from __future__ import annotations


class EmbeddedError(Exception):
    """Base of what the embedded parts raise. The message says why."""


class EmbeddedBrokerError(EmbeddedError):
    """The broker could not be started."""


class EmbeddedPostgresError(EmbeddedError):
    """The server could not be set up, started or asked; the message ends with its log's last lines if it has one."""
