"""The database keeps text as UTF-8, or is refused: in SQL_ASCII a character span would count bytes."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import Engine, event


def require_utf8(engine: Engine, refusal: type[Exception]) -> None:
    """Let connecting raise ``refusal``, with what to do about it, where the database's encoding is not UTF8."""

    # First of all, because SQLAlchemy already stumbles over what it asks the server for.
    @event.listens_for(engine, "connect", insert=True)
    def look(connection: psycopg.Connection[Any], _: object) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            connection.close()
            message = f"the database has the encoding {encoding}: create one with ENCODING 'UTF8' TEMPLATE template0"
            raise refusal(f"{message}, and name it in GASP_DATABASE_URL")
