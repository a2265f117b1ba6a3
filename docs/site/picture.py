"""Draws docs/demo.svg: some exchanges of what ``make demo`` printed, as the terminal showed them.

script --command "make demo" demo.log        # in a terminal of 92 columns
.venv/bin/python docs/site/picture.py demo.log hr-0001 manual-0001 > docs/demo.svg
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

COLUMNS = 92
# The theme's red is hard to read on its dark ground.
DARK_RED, RED = "#cc555a", "#ff8a80"
# As rich's own, without its fonts, which it would load from elsewhere.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def exchanges(log: str) -> list[str]:
    """The tables of the verdicts, each from its title to its last line, with their colours."""
    found: list[list[str]] = []
    for line in log.replace("\r", "").splitlines():
        plain = Text.from_ansi(line).plain.rstrip()
        if re.fullmatch(r"\S+ · \S+", plain) or plain == "Totals":
            found.append([])
        if found:
            found[-1].append(line)
    return ["\n".join(lines) for lines in found]


def picture(log: str, wanted: list[str]) -> str:
    """The exchanges of these ids below the command, as SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print("[bold]$ make demo[/]\n", highlight=False)
    for name in wanted:
        for text in exchanges(log):
            if f" · {name}" in Text.from_ansi(text.splitlines()[0]).plain:
                console.print(Text.from_ansi(text))
                console.print()
    console.print("…", highlight=False)
    drawn = console.export_svg(title="make demo", theme=SVG_EXPORT_THEME, code_format=FRAME, unique_id="demo")
    return drawn.replace(DARK_RED, RED)


if __name__ == "__main__":
    sys.stdout.write(picture(Path(sys.argv[1]).read_text("utf-8", "replace"), sys.argv[2:]))
