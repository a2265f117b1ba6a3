"""The version of the installed distribution."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

DISTRIBUTION = "gasp-audit"


def _installed() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:  # a checkout on the path, without an installation
        return "unknown"


__version__ = _installed()
