"""The real PgBouncer of Debian, in front of a test's PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import make_url

from tests.waiting import wait_until
from worker.embedded.guarded import free_port

PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")
FETCH_TIMEOUT_S = 120
CONFIG = """
[databases]
* = host={host} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


class PgBouncerCannotRun(Exception):  # noqa: N818 - a reason to skip a test, not a fault
    """There is no PgBouncer here, and it cannot be fetched."""


@contextmanager
def pgbouncer(server_url: str, *, pool_size: int = 2) -> Iterator[str]:
    """Pool the connections to a server by transactions; the URL to use in place of the server's.

    Raises PgBouncerCannotRun.
    """
    program, libraries = _program()
    address = make_url(server_url)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="gasp-pgbouncer-") as folder:
        Path(folder).chmod(0o777)
        config = Path(folder) / "pgbouncer.ini"
        host = str(address.query["host"])
        config.write_text(CONFIG.format(host=host, port=port, pool_size=pool_size, folder=folder), "utf-8")
        config.chmod(0o644)
        # It does not run as root.
        as_nobody = ("-u", "nobody") if os.geteuid() == 0 else ()
        environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)} if libraries else dict(os.environ)
        process = subprocess.Popen(
            [program, *as_nobody, str(config)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_until((Path(folder) / "pgbouncer.pid").exists, what="PgBouncer")
            user, database = quote(address.username or ""), quote(address.database or "")
            yield f"postgresql+psycopg://{user}@127.0.0.1:{port}/{database}"
        finally:
            process.terminate()
            process.wait(30)


def _program() -> tuple[str, Path | None]:
    """PgBouncer, and the folder of its libraries if it is not installed but was fetched."""
    installed = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if installed:
        return installed, None
    root = _fetched()
    (library,) = {path.parent for path in root.rglob("libevent-*.so.*")}
    return str(root / "usr/sbin/pgbouncer"), library


def _fetched() -> Path:
    """The files of Debian's packages, fetched on the first call and not installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise PgBouncerCannotRun("there is no pgbouncer on the PATH, and no apt-get to fetch it with")
    cache = Path(os.environ.get("GASP_CACHE_DIR") or Path.home() / ".cache" / "gasp-audit")
    root = cache / "pgbouncer"
    if root.is_dir():
        return root
    cache.mkdir(parents=True, exist_ok=True)
    # Moved into place when complete, so that an interrupted download is not taken for the whole.
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        _run(["apt-get", "-qq", "download", *PACKAGES], folder)
        for package in Path(folder).glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), f"{folder}/root"], folder)
        try:
            (Path(folder) / "root").replace(root)
        except OSError:
            # Another process was quicker.
            if not root.is_dir():
                raise
    return root


def _run(command: list[str], folder: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise PgBouncerCannotRun(f"{command[0]} did not end within {FETCH_TIMEOUT_S} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise PgBouncerCannotRun(f"{command[0]} failed: {lines[-1] if lines else 'it printed nothing'}")
