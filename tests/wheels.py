"""The wheel as it would be released, and environments that hold it and its own dependencies, nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
OURS = "gasp-audit"
PACKAGES = ("gasp_core", "migrations", "schemas", "worker")
UV = Path(sys.executable).with_name("uv")


def build(folder: Path) -> Path:
    """Build the source distribution of this tree and from that the wheel, with what is installed; return the wheel."""
    tree = folder / "tree"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    python = ("--offline", "--no-build-isolation", "--python", sys.executable)
    subprocess.run([UV, "build", "--quiet", *python, "--out-dir", folder / "dist", tree], check=True, timeout=120)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in ``folder``."""

    folder: Path

    def run(
        self, program: str, *arguments: str, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its programs in its folder, where nothing of this tree can be imported from."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder,
            env=inherited | dict(variables or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def environment(folder: Path, wheel: Path, *extras: str) -> Environment:
    """A new environment with the wheel, and with links to what it and these extras of it require."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    install: list[str | Path] = [UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel]
    subprocess.run(install, check=True, timeout=60)
    (site,) = folder.glob("lib/*/site-packages")
    links = folder / "links"
    links.mkdir()
    for found in _closure(next(iter(distributions(name=OURS, path=[str(site)]))), extras):
        for entry in _entries(found):
            if not (links / entry.name).exists():
                (links / entry.name).symlink_to(entry)
    (site / "links.pth").write_text(f"{links}\n", "utf-8")
    return Environment(folder)


def _closure(ours: Distribution, extras: tuple[str, ...]) -> Iterator[Distribution]:
    """What is required of what is installed here, however indirectly."""
    waiting = [(OURS, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        found = ours if name == OURS else distribution(name)
        if found is not ours:
            yield found
        for required in _required(found, wanted):
            if required not in seen:
                seen.add(required)
                waiting.append(required)


def _required(found: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for text in found.requires or ():
        required = Requirement(text)
        if required.marker is None or any(required.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield canonicalize_name(required.name), frozenset(required.extras)


def _entries(found: Distribution) -> Iterator[Path]:
    """The files and folders of a distribution that lie in site-packages itself."""
    names = {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    for name in names:
        yield Path(str(found.locate_file(name)))
