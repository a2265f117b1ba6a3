"""Where results are sent back to: the part of the settings for the exporter. Nowhere, unless an address is set."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from worker.settings.channels import is_private

OTLP = "otlp"
LANGFUSE = "langfuse"
LANGSMITH = "langsmith"
MLFLOW = "mlflow"
DESTINATIONS = (OTLP, LANGFUSE, LANGSMITH, MLFLOW)


class ExportChoice(BaseModel):
    """The addresses of up to four systems, with what they ask for.

    Plain http is for this machine alone: what is posted holds sentences of answers.
    """

    export_otlp_url: SecretStr | None = Field(
        None,
        description="Results of exchanges from OpenTelemetry traces go here as gen_ai.evaluation.result events: an "
        "address of OTLP/HTTP for logs, such as https://collector:4318/v1/logs",
    )
    export_otlp_headers: SecretStr | None = Field(
        None, validate_default=True, description="Headers for it, as name=value with commas between"
    )
    export_langfuse_url: SecretStr | None = Field(
        None, description="Results of exchanges from Langfuse go here as scores, such as https://cloud.langfuse.com"
    )
    export_langfuse_public_key: str | None = Field(
        None, validate_default=True, description="The project's public key; needed with the address"
    )
    export_langfuse_secret_key: SecretStr | None = Field(
        None, validate_default=True, description="The project's secret key; needed with the address"
    )
    export_langsmith_url: SecretStr | None = Field(
        None,
        description="Results of exchanges from LangSmith go here as feedback, such as https://api.smith.langchain.com",
    )
    export_langsmith_api_key: SecretStr | None = Field(
        None, validate_default=True, description="The API key; needed with the address"
    )
    export_mlflow_url: SecretStr | None = Field(
        None, description="Results of exchanges from MLflow go to this tracking server as assessments of the traces"
    )
    export_mlflow_token: SecretStr | None = Field(
        None, validate_default=True, description="A bearer token for it, if it asks for one"
    )

    @property
    def export_destinations(self) -> tuple[str, ...]:
        """The systems that results are sent to, of otlp, langfuse, langsmith and mlflow."""
        return tuple(name for name in DESTINATIONS if getattr(self, f"export_{name}_url") is not None)

    @field_validator(*(f"export_{name}_url" for name in DESTINATIONS))
    @classmethod
    def _export_encrypted(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None or not url.get_secret_value():
            return None
        if not is_private(url.get_secret_value()):
            message = "must begin with https://, or with http:// and name this machine: localhost or 127.0.0.1"
            raise ValueError(message)
        return SecretStr(url.get_secret_value().rstrip("/"))

    @field_validator("export_langfuse_public_key", "export_langfuse_secret_key", "export_langsmith_api_key")
    @classmethod
    def _export_key_with_address(cls, key: str | SecretStr | None, info: ValidationInfo) -> str | SecretStr | None:
        address = f"export_{_system_of(info)}_url"
        if address in info.data and (info.data[address] is None) != (not key):
            message = f"and GASP_{address.upper()} are needed together"
            raise ValueError(message)
        return key or None

    @field_validator("export_otlp_headers", "export_mlflow_token")
    @classmethod
    def _export_extra_with_address(cls, extra: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        address = f"export_{_system_of(info)}_url"
        if extra and address in info.data and info.data[address] is None:
            message = f"has no effect without GASP_{address.upper()}"
            raise ValueError(message)
        return extra or None

    @field_validator("export_otlp_headers")
    @classmethod
    def _export_pairs(cls, headers: SecretStr | None) -> SecretStr | None:
        pairs = headers.get_secret_value().split(",") if headers else []
        if any(not name.strip() or not mark for name, mark, _ in (pair.partition("=") for pair in pairs)):
            message = "wants name=value, or several of these with commas between"
            raise ValueError(message)
        return headers


def _system_of(info: ValidationInfo) -> str:
    return str(info.field_name).split("_")[1]
