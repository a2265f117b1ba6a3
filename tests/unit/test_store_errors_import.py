from __future__ import annotations

import subprocess
import sys

LOADED = "import sys, worker.store.errors; print(sorted({'sqlalchemy', 'psycopg', 'numpy'} & sys.modules.keys()))"


def test_the_errors_of_the_store_can_be_imported_without_the_database_layer() -> None:
    """Whoever only catches them, such as the command line, need not wait for it."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
