"""What keeps a process alive and seen: the part of the settings for the watchdog, HTTP, the log and secrets."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field, field_validator


class ProcessSettings(BaseModel):
    """When a hanging process ends itself, where it answers, what it logs, and where secrets lie."""

    wedged_after_s: float = Field(
        300.0, ge=5, description="A process whose poll loop is silent for so long ends itself"
    )
    work_timeout_s: float = Field(
        3600.0,
        ge=5,
        description="A process in which a batch, a job or the start makes no progress for so long ends itself, too",
    )
    http_host: str = Field("127.0.0.1", description="The address for /healthz, /readyz and /metrics; 0.0.0.0 is all")
    http_port: int | None = Field(
        None, ge=0, le=65_535, description="The port for them; 0 is any free one. Without it they are off"
    )
    log_level: str = Field("info", description="The least level that is logged: debug, info, warning or error")
    secrets_dir: Path | None = Field(
        None,
        description="A folder with files in place of variables, each named after one in lower case, such as "
        "gasp_database_url. A variable wins over its file",
    )

    @field_validator("log_level")
    @classmethod
    def _level(cls, level: str) -> str:
        if level.lower() not in {"debug", "info", "warning", "error"}:
            message = "must be debug, info, warning or error"
            raise ValueError(message)
        return level.lower()
