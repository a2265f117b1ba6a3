"""The processor that something was measured on."""

from __future__ import annotations

from pathlib import Path

# What decides how fast a model is.
TELLING = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def processor() -> str:
    """Its name, and which of the kinds of instructions that matter it has, as Linux tells them."""
    told: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    flags = set(told.get("flags", "").split())
    return f"{told.get('model name', 'unknown')}: {' '.join(one for one in TELLING if one in flags)}"
