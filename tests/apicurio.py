"""One Apicurio Registry, a real one, which speaks Confluent's interface and one of its own.

Maven fetches it once into ``$GASP_CACHE_DIR/apicurio`` (default ``~/.cache/gasp-audit``). What it is told it forgets at
its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from worker.embedded.guarded import GuardedProcess, free_port

# The last that runs on Java 17.
VERSION = "3.0.9"
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
FETCH_TIMEOUT_S = 240
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 10.0

_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")


class ApicurioCannotRun(Exception):  # noqa: N818 - the reason that a skipped test gives
    """Java, Maven or the registry cannot be had here; the message says which."""


class Apicurio:
    """A registry on a fixed loopback port; ``url`` is where it speaks Confluent's interface."""

    def __init__(self, folder: Path, log_path: Path) -> None:
        port = free_port()
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/apis/ccompat/v7"
        jar = next(folder.glob("*-runner.jar"))
        options = (f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1")
        self._command = ("java", *_JVM, *options, "-jar", str(jar))
        self._log_path = log_path
        self._process: GuardedProcess | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = GuardedProcess(self._command, self._log_path)
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.exit_status(0.1) is None and time.monotonic() < deadline:
            try:
                if httpx2.get(f"{self.url}/subjects", timeout=2).status_code == httpx2.codes.OK:
                    return
            except httpx2.HTTPError:
                continue
        self.stop()
        raise AssertionError(f"Apicurio did not start: {self._log_path.read_text('utf-8', 'replace')[-1000:]}")

    def stop(self) -> None:
        """End it, and forget its schemas."""
        if self._process is not None:
            self._process.stop(STOP_TIMEOUT_S)
            self._process = None

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: tuple[str, ...] = ()) -> int:
        """Register a schema, which may refer to the first versions of other subjects; gives its id."""
        others = [{"name": name, "subject": name, "version": 1} for name in references]
        body = {"schema": schema, "schemaType": kind, "references": others}
        reply = httpx2.post(f"{self.url}/subjects/{subject}/versions", json=body, timeout=20)
        reply.raise_for_status()
        return int(reply.json()["id"])


@contextmanager
def apicurio() -> Iterator[Apicurio]:
    """Run a registry. Raises ApicurioCannotRun."""
    folder = fetched()
    with tempfile.TemporaryDirectory(prefix="gasp-apicurio-") as logs:
        registry = Apicurio(folder, Path(logs) / "apicurio.log")
        try:
            registry.start()
            yield registry
        finally:
            registry.stop()


def fetched() -> Path:
    """The folder that the registry lies in, fetched on the first call. Raises ApicurioCannotRun."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise ApicurioCannotRun(f"there is no {tool} on the PATH")
    cache = Path(os.environ.get("GASP_CACHE_DIR") or Path.home() / ".cache" / "gasp-audit")
    place = cache / "apicurio" / VERSION
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # Moved into place when complete, so that an interrupted download is not taken for the whole.
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        _fetch(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}"])
        (archive,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(Path(folder) / "app", filter="data")
        try:
            (Path(folder) / "app").replace(place)
        except OSError:
            # Another process was quicker.
            if not place.is_dir():
                raise
    return place


def _fetch(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise ApicurioCannotRun(f"mvn did not end within {FETCH_TIMEOUT_S} s") from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ApicurioCannotRun(f"mvn failed: {lines[0] if lines else 'it printed nothing'}")
