"""Logs: one JSON object a line, events as snake_case facts. Message text never gets here."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog


def configure_logs(level: str, stream: TextIO | None = None) -> None:
    """Send our events, and warnings of the libraries, to ``stream`` (default: standard error)."""
    target = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        # Module-level loggers exist before this call and must follow it, in tests more than once.
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(_LibraryFormatter())
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[handler], force=True)
    # In an outage it says more than one line a second what worker.broker says once. Its debug level logs messages.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


class _LibraryFormatter(logging.Formatter):
    """A library's log line as one of ours."""

    def format(self, record: logging.LogRecord) -> str:
        event = {"event": "library_log", "logger": record.name, "level": record.levelname.lower()}
        return str(structlog.processors.JSONRenderer()(None, "", event | {"message": record.getMessage()}))
