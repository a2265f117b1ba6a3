"""The document store that the settings name, opened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TypeAlias

from worker.documents.cache import CachedDocuments
from worker.documents.http import HttpDocuments
from worker.errors import DocumentsUnavailable, SettingsError
from worker.settings.documents import DocumentStoreChoice
from worker.store.database import Database
from worker.store.document_query import DocumentQuery
from worker.store.engine import open_engine
from worker.store.errors import StoreError, StoreUnavailable

Lookup: TypeAlias = Callable[[Collection[str]], Mapping[str, str]]
"""Gives the texts of those ids that there are. Raises DocumentsUnavailable, which passes, and SettingsError."""


@contextmanager
def opened_documents(choice: DocumentStoreChoice, left_s: Callable[[], float]) -> Iterator[Lookup]:
    """What looks documents up; without a document store it finds none. ``left_s`` as in ``open_engine``."""
    url = None if choice.documents_url is None else choice.documents_url.get_secret_value()
    if url is None:
        yield lambda _: {}
    elif choice.documents_query is not None:
        engine = open_engine(url, application_name="gasp-documents", left_s=left_s)
        with closing(Database(engine)) as database:
            yield CachedDocuments(_told_apart(DocumentQuery(database, choice.documents_query))).texts
    else:
        token = None if choice.documents_token is None else choice.documents_token.get_secret_value()
        with closing(HttpDocuments(url, token)) as documents:
            yield CachedDocuments(documents.fetch).texts


def _told_apart(query: DocumentQuery) -> Callable[[Sequence[str]], Mapping[str, str]]:
    """The query's ``fetch``, with the faults of this database told apart from those of the worker's own."""

    def fetch(ids: Sequence[str]) -> Mapping[str, str]:
        try:
            return query.fetch(ids)
        except StoreError as error:
            told = str(error).replace("GASP_DATABASE_URL", "GASP_DOCUMENTS_URL")
            if isinstance(error, StoreUnavailable):
                raise DocumentsUnavailable(told) from None
            raise SettingsError(f"the document store refuses: {told}; look at GASP_DOCUMENTS_QUERY") from None

    return fetch
