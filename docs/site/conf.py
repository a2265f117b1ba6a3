"""How Sphinx makes a site of the pages, which stay plain Markdown: `make docs`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

project = "GASP audit"
version = release = _PROJECT["version"]
project_copyright = "the GASP audit authors"

# The source is the whole checkout, so that links to its files hold on the site as they do on a code host.
extensions = ["myst_parser"]
root_doc = "docs/site/contents"
include_patterns = ["*.md", "docs/*.md", "docs/site/*.md", "deploy/*.md"]
exclude_patterns = [".*", "build", "gasp_core", "migrations", "schemas", "tests", "worker", "**/*.egg-info"]
myst_heading_anchors = 4

# Sphinx's own theme, so that there is no other package to keep in step with it. It reads static/custom.css.
html_theme = "alabaster"
html_theme_options = {"page_width": "1300px", "sidebar_width": "250px", "font_family": "system-ui, sans-serif"}
html_theme_options |= {"head_font_family": "system-ui, sans-serif"}
html_static_path = ["static"]
html_title = f"GASP audit {release}"
# A first page that leads to docs/index.html.
html_extra_path = ["root"]
html_copy_source = False
html_show_sphinx = False
