from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.store_examples import rows
from worker.embedded.databases import create_database, drop_database, ensure_database, psql_command
from worker.embedded.errors import EmbeddedPostgresError
from worker.embedded.postgres import embedded_postgres


@pytest.fixture
def directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="gasp-embedded-"))
    yield made
    shutil.rmtree(made)


def _process_id(directory: Path) -> int:
    return int(next(directory.glob("postgres-*/postmaster.pid")).read_text().splitlines()[0])


def test_the_data_is_there_again_at_the_next_start(directory: Path) -> None:
    with embedded_postgres(directory, durable=False) as server:
        url = ensure_database(server, "kept")
        rows(url, "CREATE TABLE t AS SELECT 7 AS n")
    assert not list(directory.glob("postgres-*/postmaster.pid"))
    with embedded_postgres(directory, durable=False) as server:
        assert rows(ensure_database(server, "kept"), "SELECT n FROM t") == [{"n": 7}]


def test_a_directory_too_deep_for_a_socket_and_with_odd_characters_works(directory: Path) -> None:
    deep = directory / 'it\'s "deep" & spaced % ü' / ("x" * 90)
    with embedded_postgres(deep, durable=False) as server:
        assert rows(server, "SELECT 1 AS n") == [{"n": 1}]
        assert subprocess.run([*psql_command(server), "-Atc", "SELECT 2"], capture_output=True).stdout == b"2\n"


def test_a_second_user_shares_the_server_and_the_last_one_stops_it(directory: Path) -> None:
    with embedded_postgres(directory, durable=False) as first:
        process_id = _process_id(directory)
        with embedded_postgres(directory, durable=False) as second:
            assert first == second
            assert _process_id(directory) == process_id
        assert rows(first, "SELECT 1 AS n") == [{"n": 1}]
    assert not list(directory.glob("postgres-*/postmaster.pid"))


def test_the_server_of_a_killed_process_is_taken_over_and_stopped(directory: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from worker.embedded.postgres import embedded_postgres
with embedded_postgres(Path(sys.argv[1]), durable=False):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, str(directory)], check=False)
    process_id = _process_id(directory)
    with embedded_postgres(directory, durable=False) as server:
        assert _process_id(directory) == process_id
        assert rows(server, "SELECT 1 AS n") == [{"n": 1}]
    assert not list(directory.glob("postgres-*/postmaster.pid"))


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_a_process_file_that_names_an_unrelated_process_is_ignored(directory: Path) -> None:
    with embedded_postgres(directory, durable=False):
        file = next(directory.glob("postgres-*/postmaster.pid"))
        lines = file.read_text().splitlines()
    file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    with embedded_postgres(directory, durable=False) as server:
        assert rows(server, "SELECT 1 AS n") == [{"n": 1}]


def test_a_server_that_cannot_start_says_why(directory: Path) -> None:
    with embedded_postgres(directory, durable=False):
        data = next(directory.glob("postgres-*"))
    (data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"), embedded_postgres(directory, durable=False):
        pass


def test_databases_are_made_copied_and_dropped(postgres_server: str) -> None:
    url = create_database(postgres_server, "original")
    rows(url, "CREATE TABLE t AS SELECT 7 AS n")
    copy = create_database(postgres_server, "copy", template="original")
    assert rows(copy, "SELECT n FROM t") == [{"n": 7}]
    with pytest.raises(EmbeddedPostgresError, match="already exists"):
        create_database(postgres_server, "copy")
    drop_database(postgres_server, "copy")
    drop_database(postgres_server, "copy")
    drop_database(postgres_server, "original")


def test_a_database_name_cannot_carry_sql(postgres_server: str) -> None:
    with pytest.raises(ValueError, match="database name"):
        drop_database(postgres_server, 'x"; DROP DATABASE postgres; --')
