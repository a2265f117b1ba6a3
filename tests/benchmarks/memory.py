"""Resident memory of this process, as Linux tells it."""

from __future__ import annotations

from pathlib import Path


def reset_peak_mb() -> float:
    """Forget the peak of resident memory so far; give what is resident now, in MB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status_mb("VmRSS")


def status_mb(name: str) -> float:
    """A figure of /proc/self/status, such as VmHWM, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)
