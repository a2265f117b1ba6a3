"""Documents in a PostgreSQL database of the operator's, by the operator's own query."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ARRAY, Connection, Text, bindparam, text

from worker.store.database import Database
from worker.store.repository import Repository, reads

# Of one lookup; a query that ignores the ids must not fill the memory.
MAX_ROWS = 10_000


class DocumentQuery(Repository):
    """``query`` gives rows whose first two columns are id and text; ``:ids`` in it is bound to the ids, as text[]."""

    def __init__(self, database: Database, query: str) -> None:
        super().__init__(database)
        # The operator's own words; as a part of a query they can only select.
        self._query = f"SELECT * FROM ({query.strip().rstrip(';')}) AS documents LIMIT {MAX_ROWS}"  # noqa: S608

    @reads
    def fetch(self, connection: Connection, ids: Sequence[str]) -> dict[str, str]:
        """The texts of those that there are. Raises StoreError."""
        asked = text(self._query).bindparams(bindparam("ids", list(ids), ARRAY(Text())))
        wanted = set(ids)
        found = ((str(row[0]), row[1]) for row in connection.execute(asked))
        return {one: str(content) for one, content in found if one in wanted and content is not None}
