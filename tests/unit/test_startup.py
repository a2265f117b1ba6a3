"""What a command imports before it has anything to do: the help and a wrong argument wait for no library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

import gasp_core.cli
import worker.cli

# Each takes from a tenth of a second to several seconds to import.
HEAVY = (
    *("alembic", "apscheduler", "httpx2", "kafka", "matplotlib", "numpy", "prometheus_client", "psycopg"),
    *(
        "pydantic_settings",
        "scipy",
        "sklearn",
        "sqlalchemy",
        "starlette",
        "structlog",
        "torch",
        "transformers",
        "uvicorn",
    ),
)
# Runs command lines in one fresh process: a JSON list of them in, a list of [exit status, output, heavy modules] out.
SCRIPT = """
import importlib, json, sys
from typer.testing import CliRunner
app = importlib.import_module(sys.argv[1]).app
answers = []
for arguments in json.loads(sys.argv[2]):
    done = CliRunner().invoke(app, arguments)
    said = done.output + ("" if isinstance(done.exception, SystemExit) else str(done.exception or ""))
    answers.append([done.exit_code, said, sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[3:]))])
print(json.dumps(answers))
"""
APPS = {"gasp_core.cli": gasp_core.cli.app, "worker.cli": worker.cli.app}


def run_all(module: str, command_lines: list[list[str]]) -> list[tuple[int, str, list[str]]]:
    """The exit status and output of each, and which heavy modules were loaded when it had ended."""
    process = [sys.executable, "-c", SCRIPT, module, json.dumps(command_lines), *HEAVY]
    done = subprocess.run(process, capture_output=True, text=True, check=True, timeout=60)
    return [(status, output, loaded) for status, output, loaded in json.loads(done.stdout)]


def command_lines(command: Any, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The command and every command below it."""
    yield list(path)
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from command_lines(child, (*path, name))


@pytest.mark.parametrize("module", APPS)
def test_the_help_of_every_command_loads_no_library_that_takes_time(module: str) -> None:
    lines = [[*line, "--help"] for line in command_lines(typer.main.get_command(APPS[module]))]
    assert len(lines) > 2
    for line, (status, output, loaded) in zip(lines, run_all(module, lines), strict=True):
        assert (line, status, loaded) == (line, 0, [])
        assert "Usage" in output


def test_the_help_of_the_worker_lists_every_command_under_what_it_is_for() -> None:
    ((_, output, _),) = run_all("worker.cli", [["--help"]])
    panels = [worker.cli.SET_UP, worker.cli.RUN, worker.cli.STORED, worker.cli.REVIEW]
    places = [output.index(panel) for panel in panels]
    assert places == sorted(places)
    assert "Commands" not in output


WRONG = {
    "gasp_core.cli": {
        "detect --input missing.jsonl --output out.csv": "missing.jsonl: No such file",
        "detect --input in.jsonl --output no/such/folder/out.csv": "its folder does not exist",
        "detect --input in.jsonl --output out.csv --feature nonsense": "nonsense",
        "detect --input in.jsonl --output out.csv --k-chunks 0": "--k-chunks",
        "detect --input LABELLED --output out.csv --detector nonsense": "no detector 'nonsense'",
        "detect --input FOLDER --output out.csv": "Is a directory",
        "detect --input in.jsonl --output FOLDER": "is a folder",
        "eval FOLDER": "Is a directory",
        "eval LABELLED --plot PICTURES": "is a folder",
        "eval missing.jsonl": "missing.jsonl: No such file",
        "eval LABELLED --detector nonsense": "no detector 'nonsense'",
        "eval LABELLED --plot no/such/folder/out.png": "its folder does not exist",
        "eval LABELLED --score-col score": "is of no use",
    },
    "worker.cli": {
        "topics --partitions 0": "--partitions",
        "replay missing.jsonl": "missing.jsonl: no such file",
        "demo --input missing.jsonl": "missing.jsonl: no such file",
        "demo --json no/such/folder/out.jsonl": "no such folder",
        "dlq list --reason nonsense": "nonsense",
        "dlq show 7": "such as 0:17",
        "dlq replay": "--all",
        "labels import missing.csv": "missing.csv: no such file",
        "labels import --format nonsense in.csv": "nonsense",
        "report --app a --html a.html --since yesterday": "ISO 8601",
        "rescore --scorer s": "--since",
        "rejudge --app shop": "--since",
        "run --roles nonsense": "no role",
        "retention set 0": "equal to 1",
        "review policy --objective recall": "--target",
        "review policy --clear --reviewers 2": "set and forgotten",
        "review export out.csv --format nonsense": "nonsense",
        "review export out.csv --format csv --state nonsense": "labelled",
        "inspect missing.jsonl": "missing.jsonl: no such file",
        "inspect": "a file or folder is wanted",
        "inspect FOLDER": "is a folder",
        "replay FOLDER": "is a folder",
        "demo --input FOLDER": "is a folder",
        "demo --json FOLDER": "is a folder",
        "labels import FOLDER": "is a folder",
        "report --app a --since 30d --html FOLDER": "is a folder",
        "review export FOLDER --format csv": "is a folder",
        "thresholds preview": "a version's id",
        "thresholds preview --flag-below inf": "a number is wanted",
        "thresholds preview 3 --flag-below 0.5": "either",
        "thresholds set --flag-below nan --note n": "a number is wanted",
        "nonsense": "nonsense",
    },
}


@pytest.mark.parametrize("module", WRONG)
def test_a_wrong_argument_is_refused_before_anything_is_loaded(module: str, tmp_path: Path) -> None:
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text(
        '{"id": "1", "source_id": "1", "context": "So it is.", "answer": "So it is.", "answer_label": 1}\n', "utf-8"
    )
    paths = {"LABELLED": labelled, "FOLDER": tmp_path / "folder.jsonl", "PICTURES": tmp_path / "pictures.png"}
    paths["FOLDER"].mkdir()
    paths["PICTURES"].mkdir()
    answers = run_all(module, [[str(paths.get(word, word)) for word in line.split()] for line in WRONG[module]])
    for (line, message), (status, output, loaded) in zip(WRONG[module].items(), answers, strict=True):
        assert (line, status != 0, loaded) == (line, True, [])
        assert message in output, line


def test_the_names_of_the_library_are_there_before_anything_is_loaded() -> None:
    script = f"import sys; from gasp_core import GASP, Case; print(sorted(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
