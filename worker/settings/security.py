"""How the connections to Kafka are secured: the settings, what makes no sense among them, and what the clients take."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaSecurity(BaseModel):
    """The part of the settings that secures Kafka. A value that would have no effect is refused, and so is half a pair.

    Files are PEM and are read anew for every connection, so that a certificate may be renewed while a worker runs.
    """

    kafka_security_protocol: Protocol = Field(
        "PLAINTEXT",
        description="SSL is TLS, SASL_SSL is TLS with user and password, SASL_PLAINTEXT is user and password "
        "without TLS",
    )
    kafka_ssl_cafile: Path | None = Field(
        None,
        description="A PEM file with the certificate authorities that may sign the broker's certificate. Without it: "
        "those that this machine trusts",
    )
    kafka_ssl_certfile: Path | None = Field(
        None, description="A PEM file with our own certificate, for brokers that ask for one"
    )
    kafka_ssl_keyfile: Path | None = Field(None, validate_default=True, description="A PEM file with its private key")
    kafka_ssl_password: SecretStr | None = Field(
        None, description="The password of the private key, if it is encrypted"
    )
    kafka_ssl_check_hostname: bool = Field(
        default=True,
        description="Whether the name in the broker's certificate must be its host. Without this check any broker "
        "with a certificate of the authority is taken for yours",
    )
    kafka_sasl_mechanism: Mechanism | None = Field(
        None, validate_default=True, description="How user and password are told to the broker; needed with SASL"
    )
    kafka_sasl_username: str | None = Field(
        None, validate_default=True, description="The user at the broker; needed with SASL"
    )
    kafka_sasl_password: SecretStr | None = Field(
        None, validate_default=True, description="The user's password; needed with SASL"
    )

    @field_validator("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile")
    @classmethod
    def _readable(cls, path: Path | None) -> Path | None:
        """Named by its variable only: a key that was pasted in place of its path is not repeated."""
        try:
            if path is not None:
                path.open("rb").close()
        except OSError as error:
            message = f"the file cannot be read: {error.strerror}"
            raise ValueError(message) from None
        return path

    @field_validator("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile", "kafka_ssl_password")
    @classmethod
    def _used_by_tls(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - a path or a secret
        if value and "SSL" not in info.data.get("kafka_security_protocol", "SSL"):
            message = "has no effect without TLS: set GASP_KAFKA_SECURITY_PROTOCOL to SSL or SASL_SSL"
            raise ValueError(message)
        return value

    @field_validator("kafka_ssl_keyfile")
    @classmethod
    def _paired(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if "kafka_ssl_certfile" in info.data and (key is None) != (info.data["kafka_ssl_certfile"] is None):
            message = "GASP_KAFKA_SSL_CERTFILE and GASP_KAFKA_SSL_KEYFILE are needed together"
            raise ValueError(message)
        return key

    @field_validator("kafka_ssl_password")
    @classmethod
    def _opens_a_key(cls, password: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if password and info.data.get("kafka_ssl_keyfile", password) is None:
            message = "there is no GASP_KAFKA_SSL_KEYFILE for it to open"
            raise ValueError(message)
        return password

    @field_validator("kafka_sasl_mechanism", "kafka_sasl_username", "kafka_sasl_password")
    @classmethod
    def _used_by_sasl(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - a name or a secret
        protocol = info.data.get("kafka_security_protocol")
        if protocol is not None and ("SASL" in protocol) != bool(value):
            message = f"is needed with GASP_KAFKA_SECURITY_PROTOCOL={protocol}"
            if value:
                message = "has no effect without SASL: set GASP_KAFKA_SECURITY_PROTOCOL to SASL_SSL"
            raise ValueError(message)
        return value


# For the embedded broker, whatever the environment says of another one.
UNSECURED: dict[str, object] = {name: field.default for name, field in KafkaSecurity.model_fields.items()}


def kafka_security(settings: KafkaSecurity) -> dict[str, object]:
    """What every client in worker.broker takes as ``security``. Holds secrets in the clear: never to be shown."""
    found: dict[str, object] = {"security_protocol": settings.kafka_security_protocol}
    if "SSL" in settings.kafka_security_protocol:
        found |= {
            "ssl_cafile": _name(settings.kafka_ssl_cafile),
            "ssl_certfile": _name(settings.kafka_ssl_certfile),
            "ssl_keyfile": _name(settings.kafka_ssl_keyfile),
            # Not None: OpenSSL would ask for the password of an encrypted key at the terminal, and wait.
            "ssl_password": _secret(settings.kafka_ssl_password),
            "ssl_check_hostname": settings.kafka_ssl_check_hostname,
        }
    if "SASL" in settings.kafka_security_protocol:
        found |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_sasl_username,
            "sasl_plain_password": _secret(settings.kafka_sasl_password),
        }
    return found


def security_warning(settings: KafkaSecurity) -> str | None:
    """What an operator should know of settings that are allowed: a login without TLS, a host name left unchecked."""
    if settings.kafka_security_protocol == "SASL_PLAINTEXT":
        return "SASL_PLAINTEXT: messages, and with PLAIN the password, cross the network unencrypted"
    if "SSL" in settings.kafka_security_protocol and not settings.kafka_ssl_check_hostname:
        return "host names are not checked: any broker with a certificate of this authority is taken for yours"
    return None


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _secret(secret: SecretStr | None) -> str:
    return "" if secret is None else secret.get_secret_value()
