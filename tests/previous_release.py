"""The release before this one, built from its commit, for the tests that run both side by side."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import DEADLINE_S

ROOT = Path(__file__).parents[1]
RUN = "from worker.cli import main; main()"


def unpack_previous_release(folder: Path) -> Path:
    """Put the files of the previous release's commit into ``folder``, which is given back.

    Raises AssertionError if the history of this checkout does not have the commit.
    """
    commit = tomllib.loads((ROOT / "tests" / "previous_release.toml").read_text("utf-8"))["commit"]
    archive = subprocess.run(["git", "archive", "--format=tar", commit], cwd=ROOT, capture_output=True, check=False)
    assert archive.returncode == 0, (
        f"the commit {commit} of the previous release is not in this checkout: run git fetch --unshallow"
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@contextmanager
def previous_worker(release: Path, log: Path, environment: Mapping[str, str], *arguments: str) -> Iterator[int]:
    """A command of the previous release, with the packages of this one's environment; its process id.

    It is told to stop at the end, and must then have ended with status 0. Its output is appended to ``log``.
    """
    own = {**environment, "PYTHONPATH": str(release)}
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [sys.executable, "-P", "-c", RUN, *arguments], cwd=release, env=own, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield process.pid
            process.terminate()
            assert process.wait(DEADLINE_S) == 0, log.read_text("utf-8")
        finally:
            process.kill()


def run_previous(release: Path, log: Path, environment: Mapping[str, str], *arguments: str) -> None:
    """Run a command of the previous release to its end, which must be a good one."""
    own = {**environment, "PYTHONPATH": str(release)}
    with log.open("ab") as output:
        command = [sys.executable, "-P", "-c", RUN, *arguments]
        ended = subprocess.run(command, cwd=release, env=own, stdout=output, stderr=output, check=False)
    assert ended.returncode == 0, log.read_text("utf-8")
