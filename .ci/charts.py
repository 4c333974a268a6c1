"""Makes the report's chart library while the package is built, from a tool of 90 MB that a run then does without."""

from pathlib import Path
from typing import Any

import vl_convert
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FILE = "tasks/report/assets/vega.js"


class ChartLibrary(BuildHookInterface):
    """Hatchling finds it by `[tool.hatch.build.hooks.custom]`, for a wheel and for a checkout alike."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Bundle Vega, Vega-Lite and Vega-Embed into one script that needs no network."""
        path = Path(self.root, _FILE)
        partial = path.with_suffix(".tmp")
        partial.write_text(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), encoding="utf-8")
        partial.replace(path)
