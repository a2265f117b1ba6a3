"""The wheel in a new environment: as a library alone, and with what the worker needs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.models import save_model
from tests.wheels import PACKAGES, ROOT, Environment, build, environment
from worker.embedded.databases import create_database

OF_EXTRAS = (
    *("alembic", "apscheduler", "kafka", "matplotlib", "orjson", "prometheus_client", "psycopg"),
    *("pydantic_settings", "scipy", "sklearn", "spacy", "sqlalchemy", "starlette", "structlog", "uvicorn"),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return environment(tmp_path_factory.mktemp("library"), wheel)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Environment:
    return environment(tmp_path_factory.mktemp("worker"), wheel, "worker")


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file())
    assert packed == {str(file.relative_to(ROOT)) for file in files if "__pycache__" not in file.parts}


def test_the_library_alone_has_no_package_of_an_extra(library: Environment) -> None:
    find = "import sys; from importlib.util import find_spec; print([name for name in sys.argv[1:] if find_spec(name)])"
    assert library.run("python", "-c", find, *OF_EXTRAS).stdout == "[]\n"
    imported = library.run("python", "-c", "from gasp_core import GASP; print(GASP.__module__)")
    assert imported.stdout == "gasp_core.gasp_rag.gasp\n", imported.stderr
    assert "Usage: gasp" in library.run("gasp", "--help").stdout


def test_the_library_alone_scores_a_file(library: Environment, tmp_path: Path) -> None:
    source, results = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"context": "A cat sat on a mat.", "answer": "A cat sat.", "query": "Who sat?"}\n', "utf-8")
    model = save_model(tmp_path / "model")
    done = library.run("gasp", "detect", "--input", str(source), "--output", str(results), "--model", str(model))
    assert done.returncode == 0, done.stderr
    assert json.loads(results.read_text("utf-8"))["sentence"] == "A cat sat."


def test_a_command_without_its_packages_says_in_one_line_what_to_install(library: Environment, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text('{"id": "1", "source_id": "1", "answer": "So it is.", "answer_label": 1}\n', "utf-8")
    for extra, program, *arguments in (
        ("worker", "gasp-worker", "run"),
        ("evaluation", "gasp", "eval", str(labelled)),
        ("plots", "gasp", "eval", str(labelled), "--plot", str(tmp_path / "out.png")),
    ):
        done = library.run(program, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
        assert f"pip install 'gasp-audit[{extra}]'" in done.stderr


def test_an_installed_worker_makes_its_database(worker: Environment, postgres_server: str) -> None:
    assert "migrate" in worker.run("gasp-worker", "--help").stdout
    url = create_database(postgres_server, "installed")
    settings = {"GASP_DATABASE_URL": url, "GASP_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    done = worker.run("gasp-worker", "migrate", variables=settings)
    assert done.returncode == 0, done.stderr
    assert "the database is at revision" in done.stdout
    roles = worker.run("gasp-worker", "migrate", "--roles-sql").stdout
    assert roles == (ROOT / "migrations" / "roles.sql").read_text("utf-8")
    page = worker.run("gasp-worker", "settings")
    assert "GASP_DATABASE_URL" in page.stdout, page.stderr
