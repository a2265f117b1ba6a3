"""Rows by the thousand in one statement.

Rows that need no answer are copied, which is the cheapest for both sides. Otherwise each column travels as one array,
which the server unrolls into rows. The statement's text is the same for any number of rows, so it is prepared once, and
the limit of 65,535 parameters does not apply. What limits a statement is a message of 1 GB, hence the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, cast

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Table,
    Text,
    Update,
    bindparam,
    case,
    column,
    func,
    select,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import TypeEngine

Values = tuple[Any, ...]

_MAX_ROWS = 20_000
_MAX_TEXT_CHARS = 32_000_000


def unrolled(**types: TypeEngine[Any]) -> TableValuedAlias:
    """A source of rows for a statement, with a column per name. ``arrays`` makes its parameters."""
    parameters = [bindparam(_parameter(name), type_=ARRAY(kind, dimensions=1)) for name, kind in types.items()]
    columns = [column(name, kind) for name, kind in types.items()]
    return func.unnest(*parameters).table_valued(*columns, name="rows").render_derived()


def arrays(names: Sequence[str], rows: Sequence[Values]) -> dict[str, list[Any]]:
    """The parameters for ``unrolled``: the rows turned on their side."""
    return {_parameter(name): [_plain(row[position]) for row in rows] for position, name in enumerate(names)}


def _parameter(name: str) -> str:
    """SQLAlchemy keeps the names of the columns that a statement sets for itself."""
    return f"{name}_array"


def _plain(value: object) -> object:
    """The driver refuses an array that mixes text with members of an enumeration."""
    return value.value if isinstance(value, StrEnum) else value


def insert_from_arrays(table: Table, names: Sequence[str]) -> Insert:
    """An INSERT of the named columns from arrays, to which ON CONFLICT and RETURNING can be added.

    Keep what comes out: to build a statement takes longer than to run it on a few rows.
    """
    source = unrolled(**{name: _carrier(table.c[name]) for name in names})
    values = [_unpacked(table.c[name], source.c[name], source) for name in names]
    return insert(table).from_select(list(names), select(*values))


def update_from_arrays(table: Table, keys: Sequence[str], names: Sequence[str]) -> Update:
    """An UPDATE of the named columns from arrays, of the rows that have these keys. Keep it, as with an INSERT."""
    source = unrolled(**{name: _carrier(table.c[name]) for name in (*keys, *names)})
    return (
        update(table)
        .where(*(table.c[name] == source.c[name] for name in keys))
        .values({name: _unpacked(table.c[name], source.c[name], source) for name in names})
    )


def insert_rows(connection: Connection, table: Table, names: Sequence[str], rows: Sequence[Values]) -> None:
    """Copy rows whose values are in the order of ``names``. Text that is a member of an enumeration goes as its value.

    What a column's type does to a value is done here, too: a JSON object becomes text.
    """
    if not rows:
        return
    processed = _processed(connection, table, names, rows)
    with _driver(connection).cursor() as cursor, cursor.copy(_copy_into(table, names)) as copy:
        for row in processed:
            copy.write_row(row)


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)


def _copy_into(table: Table, names: Sequence[str]) -> Composed:
    columns = SQL(", ").join(map(Identifier, names))
    return SQL("COPY {} ({}) FROM STDIN").format(Identifier(table.name), columns)


def _processed(
    connection: Connection, table: Table, names: Sequence[str], rows: Sequence[Values]
) -> Iterable[Sequence[Any]]:
    dialect = connection.dialect
    found = [table.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in names]
    processors = [(position, process) for position, process in enumerate(found) if process is not None]
    if not processors:
        return rows
    return (_with(processors, list(row)) for row in rows)


def _with(processors: Sequence[tuple[int, Callable[[Any], Any]]], row: list[Any]) -> list[Any]:
    for position, process in processors:
        row[position] = process(row[position])
    return row


def parts(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """Split rows so that no part holds too many or too much text. No rows make no part."""
    start = chars = 0
    for position, row in enumerate(rows):
        size = sum(len(value) for value in row if isinstance(value, str))
        if position > start and (position - start >= _MAX_ROWS or chars + size > _MAX_TEXT_CHARS):
            yield rows[start:position]
            start, chars = position, 0
        chars += size
    if start < len(rows):
        yield rows[start:]


def _carrier(target: Column[Any]) -> TypeEngine[Any]:
    """The type that travels: unnest would flatten an array of arrays, so the arrays inside go as JSON."""
    return JSONB(none_as_null=True) if isinstance(target.type, ARRAY) else target.type


def _unpacked(target: Column[Any], carried: ColumnElement[Any], source: TableValuedAlias) -> ColumnElement[Any]:
    if not isinstance(target.type, ARRAY):
        return carried
    elements = func.jsonb_array_elements_text(carried).column_valued("element")
    # Correlated by name: a subquery that read the source for itself would gather the arrays of all rows.
    own = func.array(select(elements).correlate(source).scalar_subquery(), type_=ARRAY(Text))
    return case((carried.is_not(None), sql_cast(own, target.type)))
