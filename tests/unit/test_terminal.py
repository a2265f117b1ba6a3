"""What reaches a terminal of what others wrote."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.terminal import say, visible

ROOT = Path(__file__).parents[2]
# It writes to a terminal for all the others.
THE_ONE_WAY = ROOT / "gasp_core" / "terminal.py"
WRITERS = {"print", "echo", "secho", "echo_via_pager"}
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "\r\x7f\x08",
    "\x9b31m",
    "\u202egnp.exe",
    "\u2066\u200f",
    "\ud800",
    "\U000e0041",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_wrote_does_nothing_on_a_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"ada{text}\tB\N{LATIN SMALL LETTER E WITH ACUTE}\n日本")
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert shown.startswith("ada\\u")
    assert shown.endswith("\tB\N{LATIN SMALL LETTER E WITH ACUTE}\n日本\n")
    assert visible(text).isprintable()
    assert visible("a\nb") == "a\\nb"


@given(st.text())
def test_json_says_the_same_when_it_has_passed(text: str) -> None:
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.echo", lambda shown, **_: told.append(shown))
        say(json.dumps({"name": text}, ensure_ascii=False, indent=2))
    assert json.loads(told[0]) == {"name": text}


def test_nothing_else_writes_to_the_terminal() -> None:
    """Only rich does, for tables and bars, whose texts go through ``visible``."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("worker", "gasp_core", "schemas", "migrations")
        for path in (ROOT / package).rglob("*.py")
        if path != THE_ONE_WAY
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and _writes(node.func)
    ]
    assert found == []


def _writes(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return owner in {"typer", "click"} and function.attr in WRITERS
    return isinstance(function, ast.Name) and function.id in WRITERS
