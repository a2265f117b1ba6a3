"""The pages against the tree: what they link to and name is there; docs/settings.md has every setting."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

from worker.cli import app
from worker.commands import settings_page
from worker.settings.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
ROOMS = "deploy|docs|gasp_core|migrations|schemas|tests|worker"
# Read without the worker's settings; the last is a name in Python.
OTHER_VARIABLES = {"GASP_CACHE_DIR", "GASP_RAG"}


@cache
def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def prose(page: Path) -> str:
    """The page without its blocks of code, where brackets and # mean other things."""
    return re.sub(r"^( *)```.*?^ *```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> Iterator[str]:
    return (target for target in re.findall(r"\]\(([^()\s]+)\)", prose(page)) if "://" not in target)


@cache
def anchors(page: Path) -> set[str]:
    """What code hosts and the site make of the headings; a repeated one gets a number."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_relative_link_leads_to_a_file_and_a_heading_in_it(name: str) -> None:
    page = ROOT / name
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", NAMES)
def test_every_path_that_a_page_names_is_there(name: str) -> None:
    for path in re.findall(rf"(?<![\w./-])(?:{ROOMS})/[\w./-]*[\w/]", text_of(ROOT / name)):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_that_a_page_names_is_a_setting(name: str) -> None:
    named = set(re.findall(rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9]\b", text_of(ROOT / name)))
    assert named - OTHER_VARIABLES <= {PREFIX + field.upper() for field in Settings.model_fields}


@pytest.mark.parametrize("name", NAMES)
def test_every_target_of_make_that_a_page_names_is_one(name: str) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z][a-z-]*[a-z])(?![\w-])", text_of(ROOT / name), flags=re.MULTILINE)
    assert set(named) <= targets


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    assert {(index.parent / link.partition("#")[0]).resolve() for link in links(index)} == set(PAGES) - {index}


def test_every_page_is_in_the_contents_of_the_site() -> None:
    contents = text_of(ROOT / "docs" / "site" / "contents.md")
    listed = re.findall(r"^\.\..*$", contents, flags=re.MULTILINE)
    assert sorted((ROOT / "docs" / "site" / f"{path}.md").resolve() for path in listed) == PAGES


def test_every_command_is_on_the_page_of_commands() -> None:
    listed = re.findall(r"^\| `gasp-worker ([a-z-]+)", text_of(ROOT / "docs" / "commands.md"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # it is a group


def test_the_page_of_settings_is_what_the_settings_say() -> None:
    assert text_of(ROOT / "docs" / "settings.md") == settings_page.markdown(), "run make docs-settings"


def test_every_setting_has_a_description_and_a_place_on_the_page() -> None:
    entries = [entry for part in settings_page.GROUPS.values() for entry in settings_page.entries(part)]
    assert sorted(entry.variable for entry in entries) == sorted(
        PREFIX + name.upper() for name in Settings.model_fields
    )
    assert all(len(entry.description) > 15 for entry in entries)


def test_the_wings_stand_in_the_order_of_their_contract() -> None:
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in linted if contract.get("containers") == ["worker"])
    rows = re.findall(
        r"^\| (`[a-z_/.`, ]+`) \|", text_of(ROOT / "ARCHITECTURE.md").split("from the roof down")[1], re.M
    )
    wings = [re.findall(r"`(\w+)", row) for row in rows]
    assert wings[: len(layers)] == [re.findall(r"\w+", layer) for layer in layers]


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    readme = text_of(ROOT / "README.md")
    assert len(readme.splitlines()) <= 110
    assert {"make demo", "make test"} <= set(re.findall(r"^make \w+", readme, flags=re.MULTILINE))
