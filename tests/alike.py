"""Whether two values are the same but for rounding.

Two computations of the same number agree to the last digit only where they went through the same shapes and the same
kernels: another batch, another padding, another number of threads or another processor rounds otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pytest


def assert_alike(found: Any, expected: Any, *, tolerance: float = 1e-5, path: str = "it") -> None:
    """Floats within ``tolerance`` of each other, however deep they lie; everything else equal."""
    if isinstance(expected, float) and isinstance(found, float):
        assert found == pytest.approx(expected, abs=tolerance, nan_ok=True), path
        return
    assert type(found) is type(expected), path
    before, now = _parts(expected), _parts(found)
    if before is None or now is None:
        assert found == expected, path
        return
    assert now.keys() == before.keys(), path
    for name, part in before.items():
        assert_alike(now[name], part, tolerance=tolerance, path=f"{path}.{name}")


def _parts(value: Any) -> dict[Any, Any] | None:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return dict(enumerate(value))
    return None
