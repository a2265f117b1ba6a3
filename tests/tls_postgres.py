"""A PostgreSQL that listens on TCP, speaks TLS and asks for passwords or certificates."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psycopg

from tests.certificates import CLIENT, write_certificates
from tests.waiting import wait_until
from worker.embedded.guarded import free_port
from worker.embedded.postgres import _give, _server_user
from worker.embedded.programs import ServerUser, program, run, run_options

USER = "auditor"
PASSWORD = "s3cret-of-the-auditor"

_RULES = f"""\
local   all       postgres               trust
hostssl all       {USER}    127.0.0.1/32 scram-sha-256
hostssl {CLIENT}  {CLIENT}  127.0.0.1/32 cert
"""
_STATEMENTS = (
    f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'",
    f"CREATE ROLE {CLIENT} LOGIN",
    f"CREATE DATABASE {USER} OWNER {USER}",
    f"CREATE DATABASE {CLIENT} OWNER {CLIENT}",
)
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "ssl": "on",
    "ssl_ca_file": "ca.pem",
    "ssl_cert_file": "server.pem",
    "ssl_key_file": "server-key.pem",
    "fsync": "off",
    "log_min_error_statement": "panic",
}


class NoTlsError(Exception):
    """No PostgreSQL here was built with TLS."""


@dataclass(frozen=True, slots=True)
class TlsPostgres:
    """A running server. ``files`` is the folder of ``write_certificates``."""

    port: int
    socket: Path
    files: Path

    def url(self, user: str = USER, password: str = PASSWORD, host: str = "localhost", **options: str) -> str:
        """The address of the database that is named after the user."""
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@{host}:{self.port}/{user}?{urlencode(options)}"

    def file(self, name: str) -> str:
        """The path of a PEM file."""
        return str(self.files / name)

    def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as the server's owner; gives the rows of the last one, if it has any."""
        address = f"postgresql://postgres@/postgres?host={self.socket}&port={self.port}"
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def set_tls(self, *, on: bool) -> None:
        """Switch TLS on or off, and wait until new connections meet it so."""
        word = "on" if on else "off"
        self.execute(f"ALTER SYSTEM SET ssl = {word}", "SELECT pg_reload_conf()")
        wait_until(lambda: self.execute("SHOW ssl") == [(word,)], what=f"ssl is {word}")


@contextmanager
def tls_postgres() -> Iterator[TlsPostgres]:
    """Run a server with its data in a temporary folder; at the end both are gone. Raises NoTlsError."""
    programs, user = _programs(), _server_user()
    with tempfile.TemporaryDirectory(prefix="gasp-tls-") as name:
        folder = Path(name)
        # The server's user passes through.
        folder.chmod(0o711)
        write_certificates(folder)
        server = TlsPostgres(free_port(), folder / "data", folder)
        _initialise(programs, server, user)
        _control(programs, server, user, "start")
        try:
            server.execute(*_STATEMENTS)
            yield server
        finally:
            _control(programs, server, user, "stop", "-m", "immediate")


def _programs() -> Path:
    """The folder of a PostgreSQL that was built with TLS. The wheel's is not; those of distributions are."""
    installed = shutil.which("postgres")
    folders = [program("postgres").parent, *([Path(installed).resolve().parent] if installed else [])]
    for folder in folders:
        if (folder / "pg_config").exists() and "ssl" in run([folder / "pg_config", "--configure"]).stdout:
            return folder
    raise NoTlsError("there is no PostgreSQL with TLS on the PATH")


def _initialise(programs: Path, server: TlsPostgres, user: ServerUser | None) -> None:
    data = server.socket
    data.mkdir(mode=0o700)
    _give(data, user)
    arguments = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync")
    made = run([programs / "initdb", "-D", data, *arguments], user)
    assert made.returncode == 0, made.stderr
    settings = {**_SETTINGS, "port": server.port, "unix_socket_directories": data}
    (data / "postgresql.auto.conf").write_text("".join(f"{key} = '{value}'\n" for key, value in settings.items()))
    (data / "pg_hba.conf").write_text(_RULES)
    for name in ("ca.pem", "server.pem", "server-key.pem"):
        shutil.copy(server.files / name, data / name)
        (data / name).chmod(0o600)
        _give(data / name, user)


def _control(programs: Path, server: TlsPostgres, user: ServerUser | None, *action: str) -> None:
    command: list[Path | str] = [
        programs / "pg_ctl",
        "-D",
        server.socket,
        "-w",
        "-l",
        server.socket / "server.log",
        *action,
    ]
    # Its pipes would be the server's, too, and never end.
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **run_options(user)
    )
    assert done.returncode == 0, (server.socket / "server.log").read_text("utf-8", "replace")[-500:]
