"""Whoever runs one test of pure logic does not wait for torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SLOW = ("torch", "transformers")

IMPORT_ALL = f"""
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    found = [slow for slow in {SLOW} if slow in sys.modules]
    if found:
        print(json.dumps([name, found]))
        break
"""


def test_no_unit_test_imports_torch_or_transformers_save_those_in_the_folder_scoring() -> None:
    modules = ["tests.conftest", *(f"tests.unit.{path.stem}" for path in sorted(HERE.glob("*.py")))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL, *modules], capture_output=True, text=True, check=True
    )
    assert len(modules) > 40
    assert done.stdout == "", f"{json.loads(done.stdout)}: move it to tests/unit/scoring, or the import into a function"
