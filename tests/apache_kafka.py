"""One Apache Kafka node in KRaft mode, for the tests and for ``make kafka``.

Maven fetches the jars once into ``$GASP_CACHE_DIR/kafka`` (default ``~/.cache/gasp-audit``). ``python -m
tests.apache_kafka`` starts a node, prints its bootstrap address and runs until interrupted.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from worker.broker.admin import ping
from worker.broker.errors import BrokerUnavailable
from worker.embedded.guarded import GuardedProcess, free_port

POM = Path(__file__).with_name("kafka-pom.xml")
FETCH_TIMEOUT_S = 240
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0

# For a start within seconds on few cores: no second compiler, the simplest collector.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m")

# A node that was killed is let in again only when its last registration has run out (broker.session.timeout.ms).
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}{listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{advertised}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class KafkaCannotRun(Exception):  # noqa: N818 - the reason that a skipped test gives
    """Java, Maven or the jars cannot be had here; the message says which."""


class KafkaFailedError(Exception):
    """Everything is there and the node does not start all the same. That is no reason to skip a test."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One more address of a node, reached as ``localhost``. ``settings`` are those of this listener alone.

    ``advertised`` is the host name that clients are sent on to.
    """

    name: str
    protocol: str
    advertised: str = "localhost"
    settings: Mapping[str, str] = field(default_factory=dict)


class ApacheKafka:
    """A node on fixed loopback ports with its data in ``directory``; it may be ended and started again.

    ``addresses`` has the bootstrap address of each further listener by its name. ``scram`` holds users as Kafka's
    ``--add-scram`` reads them.
    """

    def __init__(
        self, directory: Path, jars: Path, listeners: Sequence[Listener] = (), scram: Sequence[str] = ()
    ) -> None:
        """Format the storage. Raises KafkaCannotRun for a Java that is too old, KafkaFailedError."""
        port = free_port()
        ports = {listener.name: free_port() for listener in listeners}
        self.bootstrap = f"127.0.0.1:{port}"
        self.addresses = {name: f"localhost:{port}" for name, port in ports.items()}
        self.log_path = directory / "kafka.log"
        self._properties = directory / "server.properties"
        archive = _class_archive(jars)
        shared = (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()
        self._java = ("java", *_JVM, *shared, "-cp", f"{jars}/*")
        self._process: GuardedProcess | None = None
        text = _PROPERTIES.format(
            port=port,
            controller_port=free_port(),
            data=directory / "data",
            listeners="".join(f",{one.name}://localhost:{ports[one.name]}" for one in listeners),
            advertised="".join(f",{one.name}://{one.advertised}:{ports[one.name]}" for one in listeners),
            protocols="".join(f",{one.name}:{one.protocol}" for one in listeners),
        )
        self._properties.write_text(text + "".join(_listener_lines(listeners)))
        # With "=", because an id may begin with a dash.
        identity = f"--cluster-id={_cluster_id()}"
        users = [f"--add-scram={user}" for user in scram]
        _format([*self._java, "kafka.tools.StorageTool", "format", identity, "-c", str(self._properties), *users])

    @property
    def pid(self) -> int | None:
        """The process number, for signals; None while it does not run."""
        return self._process.pid if self._process else None

    def start(self, *options: str) -> None:
        """Start it, again if need be, and wait until it answers. ``options`` are the JVM's. Raises KafkaFailedError."""
        java, *others = self._java
        self._process = GuardedProcess([java, *options, *others, "kafka.Kafka", self._properties], self.log_path)
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.exit_status(0.05) is None:
            try:
                ping(self.bootstrap, timeout_s=1)
            except BrokerUnavailable:
                if time.monotonic() > deadline:
                    break
            else:
                return
        self.kill()
        raise KafkaFailedError(f"Apache Kafka did not start: {self._log_end()}")

    def stop(self) -> bool:
        """Shut it down in good order; its data and ports stay for the next start. Gives whether it ended by itself."""
        process, self._process = self._process, None
        return process is not None and process.stop(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End it as a power cut would; its data and ports stay for the next start."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _log_end(self) -> str:
        lines = self.log_path.read_text("utf-8", "replace").splitlines() if self.log_path.exists() else []
        return " / ".join(lines[-3:]) or "it printed nothing"


@contextmanager
def apache_kafka(listeners: Sequence[Listener] = (), scram: Sequence[str] = ()) -> Iterator[ApacheKafka]:
    """Run a node with its data in a temporary folder; at the end both are gone. Raises as its parts do."""
    jars = fetch_jars()
    archive_classes(jars)
    with tempfile.TemporaryDirectory(prefix="gasp-kafka-") as folder:
        node = ApacheKafka(Path(folder), jars, listeners, scram)
        try:
            node.start()
            yield node
        finally:
            node.kill()


def fetch_jars() -> Path:
    """The folder with Apache Kafka's jars, fetched on the first call. Raises KafkaCannotRun."""
    if shutil.which("java") is None:
        raise KafkaCannotRun("there is no java on the PATH (Java 17 or later is needed)")
    cache = Path(os.environ.get("GASP_CACHE_DIR") or Path.home() / ".cache" / "gasp-audit")
    jars = cache / "kafka" / uuid.uuid5(uuid.NAMESPACE_OID, POM.read_text()).hex[:12]
    if jars.is_dir():
        return jars
    if shutil.which("mvn") is None:
        raise KafkaCannotRun("there is no mvn on the PATH to fetch Apache Kafka with")
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Moved into place when complete, so that an interrupted download is not taken for the whole.
    with tempfile.TemporaryDirectory(dir=jars.parent) as folder:
        _fetch(["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={folder}/jars"])
        try:
            (Path(folder) / "jars").replace(jars)
        except OSError:
            # Another process was quicker.
            if not jars.is_dir():
                raise
    return jars


def archive_classes(jars: Path) -> None:
    """Let a node run once and leave its classes as the JVM has them: with them a start costs half. Raises as its parts.

    Nothing is done if they are there, or if another process is about it.
    """
    archive = _class_archive(jars)
    unfinished = archive.with_suffix(".unfinished")
    try:
        if archive.is_file():
            return
        unfinished.touch(exist_ok=False)
    except FileExistsError:
        return
    try:
        with tempfile.TemporaryDirectory(prefix="gasp-kafka-") as folder:
            node = ApacheKafka(Path(folder), jars)
            node.start(f"-XX:ArchiveClassesAtExit={unfinished}")
            is_whole = node.stop()
        # A JVM looks whether it is of this JVM and these jars, and does without if not; half of one would crash it.
        if is_whole and unfinished.stat().st_size:
            unfinished.replace(archive)
    finally:
        unfinished.unlink(missing_ok=True)


def _class_archive(jars: Path) -> Path:
    """Beside the jars, by the Java that it is for."""
    java = Path(shutil.which("java") or "java").resolve()
    return jars.with_name(f"{jars.name}-{uuid.uuid5(uuid.NAMESPACE_OID, str(java)).hex[:12]}.jsa")


def _listener_lines(listeners: Sequence[Listener]) -> Iterator[str]:
    for listener in listeners:
        for name, value in listener.settings.items():
            # The line breaks of PEM.
            escaped = value.replace("\n", "\\n")
            yield f"listener.name.{listener.name.lower()}.{name}={escaped}\n"


def _format(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "UnsupportedClassVersionError" in done.stderr:
        raise KafkaCannotRun("Java 17 or later is needed")
    if done.returncode:
        raise KafkaFailedError(f"the storage cannot be formatted: {(done.stdout + done.stderr).strip()[-500:]}")


def _fetch(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise KafkaCannotRun(f"{command[0]} did not end within {FETCH_TIMEOUT_S} s") from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise KafkaCannotRun(f"{command[0]} failed: {lines[0] if lines else 'it printed nothing'}")


def _cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def main() -> None:
    """Run a node until interrupted or terminated."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("starting Apache Kafka ...", flush=True)
    try:
        with apache_kafka() as node:
            print(f"Apache Kafka listens on {node.bootstrap}; Ctrl-C ends it", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("ended")


if __name__ == "__main__":
    main()
