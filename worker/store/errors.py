"""What the store raises.

    StoreError
    ├── StoreUnavailable       passes by itself: back off and try the same again
    │   ├── StoreConflict      another transaction was quicker; the store has tried again several times already
    │   ├── StoreBusy          another session kept a table or row locked for longer than we wait
    │   ├── StoreTimeout       a statement took longer than one may; less at a time may pass
    │   └── PartitionMissing   the row's week has no partition; the store has made those from now on already
    ├── StoreNotReady          somebody must act: not migrated, no such database, no right, wrong password, bad URL
    └── StoreRejected          the data can never be stored as it is

No message holds what users wrote or the password.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of everything the store raises. ``sqlstate`` is PostgreSQL's five-character code, or None without one."""

    def __init__(self, message: str, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class StoreUnavailable(StoreError):  # noqa: N818 - named for the state it reports
    """Transient: no connection, a shutdown, a timeout, a full disk.

    Nothing was written, unless the connection was lost between a COMMIT and its answer: only the rows tell then.
    """


class StoreConflict(StoreUnavailable):
    """Two transactions met: a deadlock, or one inserted or deleted what the other counted on. Nothing was written."""


class StoreBusy(StoreUnavailable):
    """Somebody else uses what was to be changed, and did not finish while we waited. Nothing was written."""


class StoreTimeout(StoreUnavailable):
    """A statement was cancelled because it took longer than one may. Nothing was written."""


class PartitionMissing(StoreUnavailable):
    """No table takes rows of that time: the weeks were not made ahead, or retention has passed. Nothing was written."""


class StoreNotReady(StoreError):  # noqa: N818 - as StoreUnavailable
    """The database must be set up first, or does not let us in. Trying again does not help."""


class StoreRejected(StoreError):  # noqa: N818 - as StoreUnavailable
    """Permanent: the database refuses the data. ``constraint`` names the violated constraint if there is one."""

    def __init__(self, message: str, *, sqlstate: str | None = None, constraint: str | None = None) -> None:
        super().__init__(message, sqlstate=sqlstate)
        self.constraint = constraint
