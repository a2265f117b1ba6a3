"""A schema registry behind an address, by the interface of Confluent's that others speak as well.

Ids as Apicurio counts them are asked for by its own interface, beside the one that is set.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from schemas.encodings.schema import KeyKind, Schema, SchemaKey, SchemaKind
from worker.errors import SchemasUnavailable, SettingsError
from worker.runtime.web import limited, may_heal, user_agent
from worker.settings.schema_registry import SchemaRegistryChoice

REQUEST_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 4 * 1024 * 1024
# Schemas that one refers to, and those refer to.
MAX_REFERENCES = 100

# What a registry says when it has looked and found none; what else answers 404 is no registry, or an older one.
_THERE_IS_NONE = (40401, 40402, 40403)
_CONFLUENT = {KeyKind.ID: "schemas/ids", KeyKind.GUID: "schemas/guids"}
_APICURIO = {KeyKind.GLOBAL_ID: "ids/globalIds", KeyKind.CONTENT_ID: "ids/contentIds"}
_COMPATIBLE, _NATIVE = "/apis/ccompat/", "/apis/registry/v2/"
_DISTRUST = (
    "GASP_SCHEMA_REGISTRY_CAFILE: the registry's certificate is of no authority that is trusted, or of another host"
)
_LOOK = "look at GASP_SCHEMA_REGISTRY_URL"


class _Reference(BaseModel):
    name: str
    subject: str
    version: int


class _Reply(BaseModel):
    """Of a schema what we read."""

    model_config = ConfigDict(hide_input_in_errors=True)

    text: str = Field(alias="schema")
    kind: str = Field("AVRO", alias="schemaType")
    references: list[_Reference] = []


class _NativeReference(BaseModel):
    name: str
    artifact: str = Field(alias="artifactId")
    version: str
    group: str | None = Field(None, alias="groupId")

    @property
    def place(self) -> str:
        parts = (self.group or "default", self.artifact, self.version)
        group, artifact, version = (quote(part, safe="") for part in parts)
        return f"groups/{group}/artifacts/{artifact}/versions/{version}"


_NATIVE_REFERENCES = TypeAdapter(list[_NativeReference])


class _Fault(BaseModel):
    error_code: int = 0


class SchemaRegistry:
    """Fetches schemas. All calls have to come one after the other; ``close`` comes last."""

    def __init__(self, choice: SchemaRegistryChoice) -> None:
        """Raises SettingsError for a file of authorities that is none."""
        if choice.schema_registry_url is None:
            raise ValueError("no registry is set")
        self._url = choice.schema_registry_url.get_secret_value().rstrip("/")
        self._headers = {
            "User-Agent": user_agent(),
            "Accept": "application/vnd.schemaregistry.v1+json, application/json",
            **_login(choice),
        }
        self._loop = asyncio.Runner()
        # What stays on this machine is not for a proxy.
        is_away = self._url.startswith("https:")
        self._client = httpx2.AsyncClient(timeout=REQUEST_TIMEOUT_S, trust_env=is_away, verify=_trusted(choice))

    def close(self) -> None:
        """Close the connections."""
        self._loop.run(self._client.aclose())
        self._loop.close()

    def look_up(self, key: SchemaKey) -> Schema | None:
        """Return the schema, or None if the registry knows none by this key.

        Raises SchemasUnavailable for what may pass, SettingsError for an answer that asks for other settings.
        """
        return self._loop.run(self._schema(key))

    async def _schema(self, key: SchemaKey) -> Schema | None:
        if key.kind in _CONFLUENT:
            body = await self._get(
                f"{self._url}/{_CONFLUENT[key.kind]}/{key.value}", is_by_guid=key.kind is KeyKind.GUID
            )
            return None if body is None else await self._whole(_reply(body), "", [])
        root, found, _ = self._url.partition(_COMPATIBLE)
        if not found or key.kind not in _APICURIO:
            return None
        return await self._native(f"{root}{_NATIVE}", f"{_APICURIO[key.kind]}/{key.value}", "", [])

    async def _native(self, api: str, place: str, name: str, seen: list[str]) -> Schema | None:
        """A schema by Apicurio's own interface, with those that it refers to."""
        body = await self._get(f"{api}{place}", is_by_guid=True)
        if body is None:
            return None
        listed = await self._get(f"{api}{place}/references", is_by_guid=True)
        references: list[Schema] = []
        for reference in _native_references(listed or b"[]"):
            _count(reference.place, seen)
            inner = await self._native(api, reference.place, reference.name, seen)
            if inner is not None:
                references.append(inner)
        return replace(_untold(body), references=tuple(references), name=name)

    async def _whole(self, reply: _Reply, name: str, seen: list[str]) -> Schema | None:
        """The schema with those that it refers to; None if there is a kind that nobody knows."""
        try:
            kind = SchemaKind(reply.kind.lower())
        except ValueError:
            return None
        references: list[Schema] = []
        for reference in reply.references:
            place = f"subjects/{quote(reference.subject, safe='')}/versions/{reference.version}"
            _count(place, seen)
            body = await self._get(f"{self._url}/{place}?deleted=true")
            inner = None if body is None else await self._whole(_reply(body), reference.name, seen)
            if inner is not None:
                references.append(inner)
        return Schema(kind, reply.text, tuple(references), name)

    async def _get(self, address: str, *, is_by_guid: bool = False) -> bytes | None:
        """The answer's body, or None for what is not there. ``is_by_guid``: some registries lack that way of asking."""
        try:
            async with (
                asyncio.timeout(REQUEST_TIMEOUT_S),
                self._client.stream("GET", address, headers=self._headers) as response,
            ):
                status, body = response.status_code, await limited(response, MAX_REPLY_BYTES)
        except (httpx2.HTTPError, TimeoutError) as error:
            if _is_distrust(error):
                raise SettingsError(_DISTRUST) from None
            # The error's own words may hold the address.
            raise SchemasUnavailable(f"the schema registry does not answer ({type(error).__name__}); {_LOOK}") from None
        if body is None:
            raise SchemasUnavailable(f"the schema registry answers with more than {MAX_REPLY_BYTES} bytes; {_LOOK}")
        if 200 <= status < 300:
            return body
        if status == HTTPStatus.NOT_FOUND and (is_by_guid or _fault(body) in _THERE_IS_NONE):
            return None
        if may_heal(status):
            raise SchemasUnavailable(f"the schema registry answers with status {status}; {_LOOK}")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise SettingsError(f"GASP_SCHEMA_REGISTRY_USER: the schema registry answers with status {status}")
        raise SettingsError(f"GASP_SCHEMA_REGISTRY_URL: status {status}; no schema registry answers at this address")


def _login(choice: SchemaRegistryChoice) -> dict[str, str]:
    if choice.schema_registry_token is not None:
        return {"Authorization": f"Bearer {choice.schema_registry_token.get_secret_value()}"}
    if choice.schema_registry_user and choice.schema_registry_password is not None:
        login = f"{choice.schema_registry_user}:{choice.schema_registry_password.get_secret_value()}"
        return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
    return {}


def _trusted(choice: SchemaRegistryChoice) -> ssl.SSLContext | bool:
    if choice.schema_registry_cafile is None:
        return True
    try:
        return ssl.create_default_context(cafile=choice.schema_registry_cafile)
    except (OSError, ValueError):
        raise SettingsError("GASP_SCHEMA_REGISTRY_CAFILE: no certificates in PEM") from None


def _is_distrust(error: BaseException | None) -> bool:
    """Whether a certificate that cannot be trusted is behind a fault."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _reply(body: bytes) -> _Reply:
    try:
        return _Reply.model_validate_json(body)
    except ValidationError:
        raise SettingsError("GASP_SCHEMA_REGISTRY_URL: an answer that no schema registry gives") from None


def _native_references(body: bytes) -> list[_NativeReference]:
    try:
        return _NATIVE_REFERENCES.validate_json(body)
    except ValidationError:
        raise SettingsError("GASP_SCHEMA_REGISTRY_URL: an answer that no schema registry gives") from None


def _count(place: str, seen: list[str]) -> None:
    seen.append(place)
    if len(seen) > MAX_REFERENCES:
        raise SettingsError(f"the schema registry has a schema with more than {MAX_REFERENCES} references")


def _fault(body: bytes) -> int:
    try:
        return _Fault.model_validate_json(body).error_code
    except ValidationError:
        return 0


def _untold(body: bytes) -> Schema:
    """A schema whose kind the answer does not tell: JSON begins with a bracket, and only Avro's names fields."""
    text = body.decode(errors="replace")
    if not text.lstrip().startswith(("{", "[", '"')):
        return Schema(SchemaKind.PROTOBUF, text)
    is_json = "$schema" in text or ('"properties"' in text and '"fields"' not in text)
    return Schema(SchemaKind.JSON if is_json else SchemaKind.AVRO, text)
