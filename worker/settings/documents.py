"""Where the texts of documents are that a log names only: the part of the settings for the document store."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from worker.settings.channels import is_private

_POSTGRES = ("postgresql://", "postgres://")
ID = "{id}"
IDS = ":ids"


class DocumentStoreChoice(BaseModel):
    """A PostgreSQL database with a query, or an address with ``{id}`` in it; none, unless one is chosen.

    Plain http is for this machine alone: what is fetched holds what passages say.
    """

    documents_url: SecretStr | None = Field(
        None,
        description="Where the texts of passages are that traces name without saying what they say: a PostgreSQL "
        "database, or an https address with {id} in it (http to this machine itself). Without it such exchanges are "
        "skipped as passages_without_text",
    )
    documents_query: str | None = Field(
        None,
        validate_default=True,
        description="For a database, the query that gives id and text of documents, with :ids where the list of ids "
        "goes: SELECT id, text FROM chunks WHERE id = ANY(:ids)",
    )
    documents_token: SecretStr | None = Field(
        None, validate_default=True, description="For an address, the bearer token, if it asks for one"
    )

    @field_validator("documents_url")
    @classmethod
    def _usable(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or not url.get_secret_value():
            return None
        value = url.get_secret_value()
        if value.startswith(_POSTGRES):
            return url
        if ID not in value:
            message = f"must begin with postgresql://, or be an address with {ID} in it"
            raise ValueError(message)
        if not is_private(value):
            message = "must begin with https://, or with http:// and name this machine: localhost or 127.0.0.1"
            raise ValueError(message)
        return url

    @field_validator("documents_query")
    @classmethod
    def _asks_for_ids(cls, query: str | None, info: ValidationInfo) -> str | None:
        if "documents_url" not in info.data:
            return query
        url = info.data["documents_url"]
        is_database = url is not None and url.get_secret_value().startswith(_POSTGRES)
        if is_database != bool(query):
            message = "is needed with a database in GASP_DOCUMENTS_URL, and with that alone"
            raise ValueError(message)
        if query and IDS not in query:
            message = f"must have {IDS} where the list of ids goes"
            raise ValueError(message)
        return query or None

    @field_validator("documents_token")
    @classmethod
    def _for_an_address(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        url = info.data.get("documents_url")
        if token and token.get_secret_value() and (url is None or url.get_secret_value().startswith(_POSTGRES)):
            message = "has no effect without an address in GASP_DOCUMENTS_URL"
            raise ValueError(message)
        return token if token and token.get_secret_value() else None
