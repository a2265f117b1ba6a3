"""What deploy/ says must be true of the code: commands, options, settings, tables, and the files of the image."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

from gasp_core.grounding import AnswerSkip
from migrations.definitions import current_definitions
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from worker.cli import app
from worker.rules.pieces import PieceSkip
from worker.runtime.health import Readiness, serve_health
from worker.runtime.metrics import Metrics
from worker.runtime.stop import GRACE_S
from worker.runtime.watchdog import Liveness
from worker.settings.settings import PREFIX, Settings
from worker.store.tables import METADATA

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
RUNBOOK = (DEPLOY / "runbook.md").read_text("utf-8")
EXAMPLE = (DEPLOY / ".env.example").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

COMMANDS = {
    "run",
    "migrate",
    "topics",
    "replay",
    "status",
    "check",
    "demo",
    "inspect",
    "dlq",
    "labels",
    "retention",
    "rescore",
    "rejudge",
    "review",
    "recalibrate",
    "fit-detector",
    "thresholds",
    "report",
    "settings",
}
OURS = {"migrate", "topics", "worker"}
# Read by gasp_core, which is used without the worker's settings as well.
CORE_VARIABLES = {"GASP_CACHE_DIR"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def worker_command() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def parse(command: TyperGroup, arguments: list[str]) -> None:
    """Let a command read its arguments without running it; it raises for an option that it does not have."""
    name, *rest = arguments
    named = command.commands[name]
    if isinstance(named, TyperGroup) and rest:
        parse(named, rest)
    else:
        named.make_context(name, rest)


def instructions(keyword: str) -> list[str]:
    return re.findall(rf"^{keyword} (.*)$", DOCKERFILE, flags=re.MULTILINE)


def variables(text: str) -> set[str]:
    return set(re.findall(rf"\b{PREFIX}[A-Z0-9_]+", text))


def setting_names() -> set[str]:
    return {PREFIX + field.upper() for field in Settings.model_fields}


def example_lines() -> Iterator[tuple[str, str, bool]]:
    """Name, value and whether it is set rather than a default that is shown."""
    for mark, name, value in re.findall(r"^(#?)([A-Z][A-Z0-9_]*)=(.*)$", EXAMPLE, flags=re.MULTILINE):
        yield name, value, not mark


def test_the_commands_are_the_ones_the_documents_speak_of(worker_command: TyperGroup) -> None:
    assert set(worker_command.commands) == COMMANDS


def test_compose_has_broker_database_set_up_and_worker(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"kafka", "postgres"} | OURS


def test_every_service_of_ours_runs_a_real_command_in_the_image(
    compose: dict[str, Any], worker_command: TyperGroup
) -> None:
    for name in OURS:
        service = compose["services"][name]
        assert service["image"] == f"gasp-audit:{PROJECT['version']}"
        parse(worker_command, service["command"])


def test_every_dependency_is_a_service_that_can_meet_its_condition(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        for name, dependency in service.get("depends_on", {}).items():
            if dependency["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
            else:
                assert dependency["condition"] == "service_completed_successfully"
                assert "restart" not in services[name]


def test_the_worker_waits_for_everything_else(compose: dict[str, Any]) -> None:
    assert set(compose["services"]["worker"]["depends_on"]) == set(compose["services"]) - {"worker"}


def test_ports_are_bound_to_this_machine_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_volumes_are_named_and_declared(compose: dict[str, Any]) -> None:
    used = {volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", ())}
    assert used == set(compose["volumes"])


def test_the_password_has_no_default_and_is_demanded(compose: dict[str, Any]) -> None:
    assert compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    assert not re.search(r"POSTGRES_PASSWORD:?-", text)
    assert ("POSTGRES_PASSWORD", "", True) in example_lines()


def test_what_compose_overrides_is_part_of_it(compose: dict[str, Any]) -> None:
    gpu = yaml.safe_load((DEPLOY / "compose.gpu.yaml").read_text("utf-8"))
    assert set(gpu["services"]) <= set(compose["services"])


@pytest.mark.parametrize(
    "name", ["compose.yaml", "compose.gpu.yaml", "compose.grafana.yaml", ".env.example", "runbook.md", "Dockerfile"]
)
def test_every_variable_named_is_a_setting(name: str) -> None:
    assert variables((DEPLOY / name).read_text("utf-8")) - CORE_VARIABLES <= setting_names()


def test_the_settings_without_a_default_are_given_by_compose(compose: dict[str, Any]) -> None:
    required = {PREFIX + name.upper() for name, field in Settings.model_fields.items() if field.is_required()}
    given = {name: set(compose["services"][name]["environment"]) for name in OURS}
    assert given == {"migrate": required, "topics": required, "worker": required | {"GASP_HTTP_HOST", "GASP_HTTP_PORT"}}


def test_the_healthcheck_asks_the_worker_whether_it_is_ready(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    program, option, script = worker["healthcheck"]["test"][1:]
    port = str(worker["environment"]["GASP_HTTP_PORT"])
    assert (program, option, script.count(port)) == ("python", "-c", 1)
    readiness = Readiness()
    with serve_health("127.0.0.1", 0, liveness=Liveness(), readiness=readiness, metrics=Metrics()) as free_port:
        ask = [sys.executable, "-c", script.replace(port, str(free_port))]
        for problem in (None, "the database is away"):
            readiness.set("database", problem)
            assert subprocess.run(ask, timeout=30, check=False).returncode == (problem is not None)
    assert subprocess.run(ask, timeout=30, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_a_worker_is_given_the_time_that_it_takes_to_stop(compose: dict[str, Any]) -> None:
    seconds = re.fullmatch(r"(\d+)s", compose["services"]["worker"]["stop_grace_period"])
    assert seconds is not None
    assert GRACE_S + 10 <= int(seconds[1]) <= 60


def test_the_address_of_the_database_in_compose_is_valid(compose: dict[str, Any]) -> None:
    environment = compose["services"]["worker"]["environment"]
    url = environment["GASP_DATABASE_URL"].replace("${POSTGRES_PASSWORD}", "secret")
    settings = Settings(database_url=url, kafka_bootstrap_servers=environment["GASP_KAFKA_BOOTSTRAP_SERVERS"])
    assert settings.database_url.get_secret_value() == "postgresql+psycopg://gasp:secret@postgres:5432/gasp"


def test_the_example_shows_the_true_defaults() -> None:
    shown = {name: value for name, value, is_set in example_lines() if not is_set and name.startswith(PREFIX)}
    assert shown
    for name, value in shown.items():
        field = name.removeprefix(PREFIX).lower()
        default = Settings.model_fields[field].default
        given = Settings.model_validate(
            {"database_url": "postgresql://h/d", "kafka_bootstrap_servers": "h:1", field: value}
        )
        assert default is None or getattr(given, field) == default, name


def test_the_image_runs_the_worker_as_nobody_special(worker_command: TyperGroup) -> None:
    assert instructions("ENTRYPOINT") == ['["gasp-worker"]']
    assert "gasp-worker" in PROJECT["scripts"]
    parse(worker_command, yaml.safe_load(instructions("CMD")[0]))
    uid, _, gid = instructions("USER")[-1].partition(":")
    assert int(uid) > 0
    assert int(gid) > 0


def test_the_images_are_pinned_to_a_version(compose: dict[str, Any]) -> None:
    images = [line.split(" AS ")[0] for line in instructions("FROM")]
    images += [service["image"] for service in compose["services"].values()]
    assert all(re.search(r":[0-9]", image) for image in images)


def test_what_the_image_copies_exists_and_is_let_through_to_the_build() -> None:
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"]
    copied = {source for line in instructions("COPY") if "--from" not in line for source in line.split()[:-1]}
    assert copied
    for source in copied:
        assert (ROOT / source).exists(), source
        assert any(Path(source).match(pattern) for pattern in let_through), source


def test_every_package_of_the_project_is_copied() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, flags=re.MULTILINE))
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert copied == packages


def test_the_commands_in_the_runbook_are_real(worker_command: TyperGroup) -> None:
    named = set(re.findall(r"(?:gasp-worker|docker compose run --rm(?: --volume \S+)? worker) ([a-z]+)", RUNBOOK))
    assert {"run", "check", "status", "replay"} <= named
    assert named <= set(worker_command.commands)
    for line in re.findall(r"docker compose run --rm(?: --volume \S+)? (?:worker|migrate) ([a-z][^`\n]*)", RUNBOOK):
        parse(worker_command, line.split())
    for roles in re.findall(r"--roles ([a-z,]+)", RUNBOOK):
        assert set(roles.split(",")) <= {"consume", "attribute", "maintain"}


def test_every_reason_of_a_dead_letter_says_in_the_runbook_what_to_do() -> None:
    (table,) = re.findall(r"^\| reason \| it means \| do \|\n(.*?)\n\n", RUNBOOK, flags=re.MULTILINE | re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[1:]]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[0])} == set(RejectReason)
    assert all(len(row) == 3 and all(row) for row in rows)


def test_every_reason_for_a_skip_has_its_line_on_the_page_of_messages() -> None:
    page = (ROOT / "docs" / "messages.md").read_text("utf-8")
    _, _, part = page.partition("### Why an exchange is skipped")
    named = {
        name for line in re.findall(r"^\| (`.*?) \|", part, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    }
    assert named >= {*SkipReason, *AnswerSkip, *PieceSkip, "duplicate"}
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\| `.*$", part, flags=re.MULTILINE)]
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows)


def test_the_tables_and_views_in_the_runbook_exist() -> None:
    views = set(current_definitions())
    blocks = re.findall(r"```sql\n(.*?)```", RUNBOOK, flags=re.DOTALL)
    named = {name for block in blocks for name in re.findall(r"(?:FROM|JOIN|UPDATE|INTO) ([a-z]\w+)", block)}
    assert named
    assert named <= set(METADATA.tables) | views
