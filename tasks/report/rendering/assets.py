"""What all pages load: styles, scripts, and the chart library as one file."""

from pathlib import Path

from tasks.report.rendering.site import Site
from tasks.rules.errors import PipelineError

CHARTS_SCRIPT = "assets/vega.js"
"""Vega, Vega-Lite and Vega-Embed in a report; building the package made the file (`.ci/charts.py`)."""
ASSETS = Path(__file__).parents[1] / "assets"
"""The folder of what pages load."""


def copy_assets(site: Site) -> None:
    """Put styles, scripts and the chart library into a report.

    Raises:
        PipelineError: the chart library is missing.
    """
    charts = ASSETS.parent / CHARTS_SCRIPT
    if not charts.exists():
        raise PipelineError(f"{charts}: missing; `uv sync --reinstall-package prbench-pipeline` makes it")
    for path in sorted(ASSETS.iterdir()):
        site.write(f"assets/{path.name}", path.read_bytes())


def copy_styles(site: Site) -> None:
    """Put what a page without figures needs into a report."""
    for name in ("report.css", "theme.js"):
        site.write(f"assets/{name}", (ASSETS / name).read_bytes())
