"""Where the schemas of binary messages are: the part of the settings for the schema registry, and for a file."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from worker.settings.channels import is_private

AVRO_SUFFIXES = (".avsc", ".json")
PROTO_SUFFIX = ".proto"


class SchemaRegistryChoice(BaseModel):
    """A registry that speaks Confluent's interface, and a schema of values that name none; neither, unless it is set.

    Plain http is for a registry that asks for no login: what is fetched are schemas, and no message leaves.
    """

    schema_registry_url: SecretStr | None = Field(
        None,
        description="The schema registry by whose ids messages in Avro or Protobuf name their schemas: Confluent's, or "
        "one that speaks its interface, such as http://registry:8081 or http://apicurio:8080/apis/ccompat/v7. Without "
        "it such messages are dead letters (unsupported_encoding)",
    )
    schema_registry_user: str | None = Field(None, description="The user at the registry, if it asks for one")
    schema_registry_password: SecretStr | None = Field(
        None, validate_default=True, description="The user's password; needed with the user"
    )
    schema_registry_token: SecretStr | None = Field(
        None, validate_default=True, description="Instead of user and password: a bearer token"
    )
    schema_registry_cafile: Path | None = Field(
        None,
        description="A PEM file with the certificate authorities that may sign the registry's certificate. Without it: "
        "those that this machine trusts",
    )
    message_schema_file: Path | None = Field(
        None,
        description="The schema of messages in Avro or Protobuf without a registry's frame: an .avsc or .proto file, "
        "or what protoc --include_imports --descriptor_set_out writes. JSON is read beside them",
    )
    message_schema_type: str | None = Field(
        None,
        validate_default=True,
        description="The full name of the Protobuf message that they are; needed with a file of Protobuf",
    )

    @field_validator("schema_registry_url")
    @classmethod
    def _registry_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or not url.get_secret_value():
            return None
        try:
            parts = urlsplit(url.get_secret_value())
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address or parts.username is not None:
            message = "must begin with http:// or https://, and hold no login: GASP_SCHEMA_REGISTRY_USER is for that"
            raise ValueError(message)
        return url

    @field_validator("schema_registry_password")
    @classmethod
    def _registry_login_paired(cls, password: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if bool(info.data.get("schema_registry_user")) != bool(password and password.get_secret_value()):
            message = "GASP_SCHEMA_REGISTRY_USER and GASP_SCHEMA_REGISTRY_PASSWORD are needed together"
            raise ValueError(message)
        return _private(password, info)

    @field_validator("schema_registry_token")
    @classmethod
    def _registry_login_alone(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if token and token.get_secret_value() and info.data.get("schema_registry_user"):
            message = "GASP_SCHEMA_REGISTRY_USER is set as well; choose one"
            raise ValueError(message)
        return _private(token, info)

    @field_validator("schema_registry_cafile", "message_schema_file")
    @classmethod
    def _schema_files_readable(cls, path: Path | None) -> Path | None:
        """Named by its variable only: what was pasted in place of a path is not repeated."""
        try:
            if path is not None:
                path.open("rb").close()
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}"
            raise ValueError(message) from None
        return path

    @field_validator("message_schema_type")
    @classmethod
    def _schema_type_of_protobuf(cls, name: str | None, info: ValidationInfo) -> str | None:
        if "message_schema_file" not in info.data:
            return name
        path = info.data["message_schema_file"]
        is_protobuf = path is not None and path.suffix not in AVRO_SUFFIXES
        if is_protobuf != bool(name):
            message = "is needed with a file of Protobuf in GASP_MESSAGE_SCHEMA_FILE, and with that alone"
            raise ValueError(message)
        return name or None


def _private(secret: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
    if secret is None or not secret.get_secret_value() or "schema_registry_url" not in info.data:
        return None
    url = info.data["schema_registry_url"]
    if url is None:
        message = "has no effect without GASP_SCHEMA_REGISTRY_URL"
        raise ValueError(message)
    if not is_private(url.get_secret_value()):
        message = "would cross the network unencrypted; GASP_SCHEMA_REGISTRY_URL must begin with https://"
        raise ValueError(message)
    return secret
