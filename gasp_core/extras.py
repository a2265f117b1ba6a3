"""Packages that only some need: those of the extras of the distribution gasp-audit."""

from __future__ import annotations

from importlib.util import find_spec

from gasp_core.errors import PackageMissing

_PACKAGES = {
    "evaluation": ("pydantic", "scipy", "sklearn"),
    "plots": ("matplotlib",),
    "embedded": ("accelerate", "gguf"),
}


def require_extra(extra: str) -> None:
    """Raise PackageMissing unless the packages of an extra are there: ``evaluation``, ``plots`` or ``embedded``."""
    for package in _PACKAGES[extra]:
        if find_spec(package) is None:
            raise PackageMissing(package, extra)
