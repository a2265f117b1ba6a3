"""deploy/grafana: every query of the dashboard, run as Grafana would run it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.history import APP, SCORER, fill
from tests.integration.store_examples import rows
from tests.integration.test_roles import apply_roles, as_login
from worker.embedded.databases import create_database, drop_database

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboards/audit.json").read_text("utf-8"))
LOGIN = "grafana_login"
SECONDS = {"m": 60, "h": 3600, "d": 86400}
MACRO = r"\$(__\w+)\(([^)]*)\)"


def queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["rawSql"]
    for variable in DASHBOARD["templating"]["list"]:
        yield f"variable {variable['name']}", variable["query"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["target"]["rawSql"]


QUERIES = dict(queries())
UNTIL = datetime.now(UTC)
SINCE = UNTIL - timedelta(days=30)


def as_grafana(sql: str, since: datetime = SINCE, until: datetime = UNTIL) -> str:
    """The statement that Grafana sends: its variables first, in the browser, then its macros, in the server."""
    values = {"app": "'intranet','support-bot'", "scorer": f"'{SCORER}'", "__interval": "1h"}
    for name, value in values.items():
        sql = re.sub(rf"\${name}\b", value, sql)
    first, last = (f"'{moment:%Y-%m-%dT%H:%M:%S.%fZ}'" for moment in (since, until))

    def expanded(macro: re.Match[str]) -> str:
        name, arguments = macro[1], [argument.strip() for argument in macro[2].split(",")]
        match name:
            case "__timeFilter":
                return f"{arguments[0]} BETWEEN {first} AND {last}"
            case "__timeFrom":
                return first
            case "__timeTo":
                return last
            case "__timeGroupAlias":
                width = arguments[1].strip("'")
                seconds = int(width[:-1]) * SECONDS[width[-1]]
                return f'floor(extract(epoch from {arguments[0]})/{seconds})*{seconds} AS "time"'
        raise AssertionError(f"not one of the dashboard's macros: {name}")

    return re.sub(MACRO, expanded, sql)


@pytest.fixture(scope="module")
def filled(postgres_server: str, template_database: str) -> Iterator[str]:
    """The URL of a login that is a member of gasp_dashboard, on a database with a month in it."""
    url = create_database(postgres_server, "for_grafana", template=template_database)
    fill(url, interactions=1_000)
    rows(url, f"CREATE ROLE {LOGIN} LOGIN")
    apply_roles(url)
    rows(url, f"GRANT gasp_dashboard TO {LOGIN}")
    apply_roles(url)
    yield as_login(url, LOGIN)
    drop_database(postgres_server, "for_grafana")


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_has_rows_on_a_filled_database_as_the_role_for_dashboards(filled: str, name: str) -> None:
    sent = as_grafana(QUERIES[name])
    assert "$" not in sent
    found = rows(filled, sent)
    assert found
    if "$__timeGroupAlias" in QUERIES[name]:
        assert [row["time"] for row in found] == sorted(row["time"] for row in found)


def test_open_traces_are_counted_by_what_they_wait_for(filled: str) -> None:
    found = rows(filled, as_grafana(QUERIES["Open traces"]))
    assert {(row["waits_for"], row["traces"], row["messages"]) for row in found} == {("root", 5, 10), ("grace", 4, 8)}
    assert max(row["oldest"] for row in found) == pytest.approx(9 * 60, abs=600)


def test_the_variables_offer_every_app_and_scorer_of_the_time_that_is_shown(filled: str) -> None:
    hours = {"since": UNTIL - timedelta(hours=3), "until": UNTIL}
    assert rows(filled, as_grafana(QUERIES["variable app"], **hours)) == [{"app": "intranet"}, {"app": APP}]
    assert rows(filled, as_grafana(QUERIES["variable scorer"], **hours)) == [{"scorer": SCORER}]
    long_ago = {name: moment - timedelta(days=400) for name, moment in hours.items()}
    assert rows(filled, as_grafana(QUERIES["variable app"], **long_ago)) == []


def test_the_shares_of_what_became_of_exchanges_are_of_the_bucket(filled: str) -> None:
    found = rows(filled, as_grafana(QUERIES["What became of exchanges"]))
    whole: dict[Any, Any] = {}
    for row in found:
        whole[row["time"]] = whole.get(row["time"], 0) + row["share"]
    assert [float(share) for share in whole.values()] == pytest.approx([1] * len(whole))
    skipped = {f"skipped: {reason}" for reason in ("no_passages", "not_rag")}
    assert {row["metric"] for row in found} == {"scored", "dead_lettered: invalid_json"} | skipped
    # Of 50 traces 16 were scored, of 1,000 messages all that are neither skipped nor dead letters.
    (all_time,) = rows(filled, as_grafana(QUERIES["Scored"]))
    assert all_time["scored"] == pytest.approx((1000 - (25 + 11 - 2) + 16) / 1050, abs=0.002)


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ("v_rates_5m WHERE time >= now() - interval '3 hours'", "ix_interactions_time_5m"),
        ("v_rates_1d WHERE time >= now() - interval '2 days'", "ix_interactions_time_1d"),
        ("v_chunk_usage WHERE time >= now() - interval '2 days'", "ix_interactions_time_1d"),
        (f"v_review_queue WHERE app = '{APP}' ORDER BY lowest_score LIMIT 5", "ix_review_tasks_open"),
    ],
)
def test_a_view_is_looked_up_by_its_time_or_by_what_is_open(filled: str, asked: str, index: str) -> None:
    plan = "\n".join(row["QUERY PLAN"] for row in rows(filled, f"EXPLAIN SELECT * FROM {asked}"))
    assert index in plan
    assert "Seq Scan on interactions" not in plan


def test_every_panel_asks_the_provisioned_data_source_and_only_views() -> None:
    provisioned = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/audit.yaml").read_text("utf-8"))
    (source,) = provisioned["datasources"]
    wanted = {"type": source["type"], "uid": source["uid"]}
    parts = [*DASHBOARD["panels"], *DASHBOARD["templating"]["list"], *DASHBOARD["annotations"]["list"]]
    assert all(part["datasource"] == wanted for part in parts if part.get("type") != "row")
    read = {name for sql in QUERIES.values() for name in re.findall(r"\bFROM (\w+)", sql)}
    assert read
    assert all(name.startswith("v_") for name in read)


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_compose_gives_grafana_the_folders_and_the_variables_that_its_files_name() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.grafana.yaml").read_text("utf-8"))
    service = compose["services"]["grafana"]
    for mounted in service["volumes"]:
        source = mounted.split(":")[0]
        assert source in compose["volumes"] or (DEPLOY / source).is_dir()
    named = (DEPLOY / "grafana/provisioning/datasources/audit.yaml").read_text("utf-8")
    assert set(re.findall(r"\$(\w+)", named)) == {name for name in service["environment"] if name.startswith("AUDIT_")}
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/audit.yaml").read_text("utf-8"))
    path = provider["providers"][0]["options"]["path"]
    assert f"./grafana/dashboards:{path}:ro" in service["volumes"]
    assert re.search(r":[0-9]", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
