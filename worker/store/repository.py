"""What every repository is: methods that are one transaction each, reading or writing.

A method takes the connection as its first argument and is decorated with ``reads`` or ``writes``; callers leave the
connection out. What another repository needs within a transaction of its own is a function beside the class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from worker.store.database import Database

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Owner = TypeVar("Owner", bound="Repository")


class Repository:
    """Statements about one thing. Its methods raise StoreError and nothing of the driver's.

    Nothing of a call that raised has been written, but for a COMMIT whose answer was lost (StoreUnavailable).
    """

    def __init__(self, database: Database) -> None:
        self.database = database


def reads(
    method: Callable[Concatenate[Owner, Connection, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Make the method a transaction that only reads."""

    @wraps(method)
    def read(repository: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with repository.database.read() as connection:
            return method(repository, connection, *arguments, **options)

    return read


def writes(
    method: Callable[Concatenate[Owner, Connection, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Make the method a unit of work, which is run again by the rule of ``Database``."""

    @wraps(method)
    def write(repository: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        return repository.database.write(lambda connection: method(repository, connection, *arguments, **options))

    return write
