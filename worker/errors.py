"""What stops the worker on purpose.

WorkerError
├── SettingsError      a setting is missing or wrong; names the variable
├── InputFileError     a file given on the command line cannot be used
├── ScorerBroken       the model fails on every exchange; only a restart can help
├── ScorerUnavailable  the device has no memory left at the moment; transient
├── DocumentsUnavailable  the document store is away; transient
└── SchemasUnavailable  the schema registry is away; transient
Stopped                a stop was asked for while waiting for something to come back

The store's and the broker's own errors are drawn in worker/store/errors.py and worker/broker/errors.py.
"""

from __future__ import annotations


class WorkerError(Exception):
    """Base of what the worker raises on purpose. The message tells a person what to do."""


class SettingsError(WorkerError):
    """A setting is missing or wrong."""


class InputFileError(WorkerError):
    """A file given on the command line cannot be used."""


class ScorerBroken(WorkerError):  # noqa: N818 - reads as the fact it states
    """The model fails on an exchange that it can always score. Nothing was decided about any message."""


class ScorerUnavailable(WorkerError):  # noqa: N818 - as above
    """The device has no memory for anything at the moment. Nothing was decided about any message."""


class DocumentsUnavailable(WorkerError):  # noqa: N818 - as above
    """The document store does not answer at the moment. Nothing was decided about any message."""


class SchemasUnavailable(WorkerError):  # noqa: N818 - as above
    """The schema registry does not answer at the moment. Nothing was decided about any message."""


class Stopped(Exception):  # noqa: N818 - not a fault: the stop that was asked for
    """A stop was asked for while a transient fault lasted."""
