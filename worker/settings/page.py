"""Where the review page answers, and whom it believes: the part of the settings for ``gasp-worker review serve``."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr, field_validator

MIN_SECRET_CHARS = 32


class PageChoice(BaseModel):
    """The review page."""

    review_page_host: str = Field("127.0.0.1", description="The address of the review page; 0.0.0.0 is all")
    review_page_port: int = Field(8088, ge=1, le=65_535, description="The port of the review page")
    review_page_proxy_header: str = Field(
        "",
        description="The header in which a reverse proxy names the reviewer, such as X-Forwarded-User. Needs the "
        "trusted proxies",
    )
    review_page_trusted_proxies: str = Field(
        "",
        description="The addresses or networks from which that header is believed, with commas between. The proxy must "
        "take the header out of what clients send",
    )
    review_page_leads: str = Field(
        "", description="The names of reviewers who are leads as well, with commas between; for a proxy"
    )
    review_page_accounts: Path | None = Field(
        None,
        description="A file with logins of the page's own in place of a proxy, for trials. Its lines are made "
        "by `gasp-worker review account`",
    )
    review_page_guidelines: Path | None = Field(
        None,
        description="A folder with a text for the reviewers of each app, `<app>.txt`, the app's name percent-encoded; "
        "`default.txt` is for every other one",
    )
    review_page_secret: SecretStr | None = Field(
        None,
        description="The secret that signs sessions; 32 characters or more. Without it every start makes one, and "
        "sessions end with the process",
    )
    review_page_session_s: float = Field(43_200.0, ge=60, description="A session ends so long after the last visit")
    review_page_lease_s: float = Field(600.0, ge=10, description="An opened task is nobody else's for so long")
    review_page_skip_s: float = Field(
        14_400.0, ge=10, description="A skipped task is not offered to the same reviewer for so long"
    )

    @property
    def session_secret(self) -> str | None:
        """The secret, for what signs. Never to be shown."""
        return self.review_page_secret.get_secret_value() if self.review_page_secret else None

    @property
    def trusted_proxies(self) -> tuple[str, ...]:
        """The networks of the trusted proxies."""
        return _listed(self.review_page_trusted_proxies)

    @property
    def leads(self) -> frozenset[str]:
        """The names of leads."""
        return frozenset(_listed(self.review_page_leads))

    @field_validator("review_page_trusted_proxies")
    @classmethod
    def _networks(cls, listed: str) -> str:
        for one in _listed(listed):
            try:
                ip_network(one)
            except ValueError:
                message = "wants addresses or networks such as 10.1.2.3 or 10.1.0.0/16, with commas between"
                raise ValueError(message) from None
        return listed

    @field_validator("review_page_secret")
    @classmethod
    def _long(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is None or not secret.get_secret_value():
            return None
        if len(secret.get_secret_value()) < MIN_SECRET_CHARS:
            message = f"must have at least {MIN_SECRET_CHARS} characters"
            raise ValueError(message)
        return secret


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())
