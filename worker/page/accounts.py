"""Logins of the page's own, for trials: a file with a line for each, ``name:role:scrypt$…``."""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

from starlette.requests import Request

from worker.errors import SettingsError
from worker.page.reviewer import Reviewer, Role, usable_name

# Sixteen megabytes and some hundredths of a second for each try.
_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
_SALT_BYTES = 16
_FIELDS = 3
MAX_PASSWORD_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Account:
    """A login. ``mark`` changes with the password and the role; by it a session ends that began before."""

    reviewer: Reviewer
    salt: bytes
    digest: bytes

    @property
    def mark(self) -> str:
        """What a session keeps of the account."""
        return hashlib.sha256(self.digest + self.reviewer.role.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Accounts:
    """The logins by name: an identity that people give by a password, and the session keeps."""

    by_name: Mapping[str, Account]

    @property
    def has_login(self) -> bool:
        """They have one."""
        return True

    def reviewer(self, request: Request) -> Reviewer | None:
        """Whom the session names, if the account is still as it was."""
        account = self.by_name.get(str(request.session.get("account")))
        if account is None or account.mark != request.session.get("mark"):
            return None
        return account.reviewer

    def admitted(self, name: str, password: str) -> Account | None:
        """The account of this name and password. An unknown name takes as long as a wrong password."""
        account = self.by_name.get(name)
        salt = account.salt if account else bytes(_SALT_BYTES)
        digest = _digest(password[:MAX_PASSWORD_CHARS], salt)
        return account if account is not None and compare_digest(digest, account.digest) else None


def account_line(name: str, role: Role, password: str) -> str:
    """The line of an account. Raises ValueError for a name that cannot be one."""
    plain = usable_name(name)
    if plain is None or ":" in plain or plain.startswith("#"):
        message = "a name has 1 to 200 visible characters, no colon, and does not begin with #"
        raise ValueError(message)
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"{plain}:{role}:scrypt${_encoded(salt)}${_encoded(_digest(password, salt))}"


def read_accounts(path: Path) -> Accounts:
    """Read the file. Raises SettingsError, which names a bad line and nothing of it."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeError):
        raise SettingsError("GASP_REVIEW_PAGE_ACCOUNTS: the file cannot be read as text") from None
    accounts = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            account = _account(line.strip())
            if account is None or account.reviewer.name in accounts:
                raise SettingsError(f"GASP_REVIEW_PAGE_ACCOUNTS: line {number} is no account, or has a name again")
            accounts[account.reviewer.name] = account
    if not accounts:
        raise SettingsError("GASP_REVIEW_PAGE_ACCOUNTS: the file has no account")
    return Accounts(accounts)


def _account(line: str) -> Account | None:
    name, *others = line.rsplit(":", _FIELDS - 1)
    try:
        role, kept = others
        kind, salt, digest = kept.split("$")
        reviewer = Reviewer(name, Role(role))
        found = Account(reviewer, b64decode(salt, validate=True), b64decode(digest, validate=True))
    except ValueError:
        return None
    return found if kind == "scrypt" and usable_name(name) == name else None


def _digest(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)


def _encoded(value: bytes) -> str:
    return b64encode(value).decode("ascii")
