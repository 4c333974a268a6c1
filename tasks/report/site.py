"""The folder of a report: files that are written only where they changed, and leftovers that are taken away."""

import json
from pathlib import Path

from tasks.rules.errors import UsageError
from warehouse.files import write_atomically

_MARK = "report.json"
"""The file that makes a folder a report's own; only such a folder, or an empty one, is written to."""


class Site:
    """A report's folder. A page that is open goes on working, since what it loads is put in place before it."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made if it is missing.

        Raises:
            UsageError: something else than a report is there.
        """
        self.folder = folder
        self._written: set[str] = {_MARK}
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder}: is a file; name a folder for the report")
        if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
            raise UsageError(f"{folder}: holds other files than a report; name an empty folder or a new one")
        folder.mkdir(parents=True, exist_ok=True)
        self.write(_MARK, json.dumps({"format": "prbench-report", "version": 1}) + "\n")

    def write(self, name: str, content: str | bytes) -> None:
        """Put a file in place, unless the same is there."""
        data = content.encode() if isinstance(content, str) else content
        path = self.folder / name
        self.keep(name)
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)

    def keep(self, name: str) -> None:
        """Count a file that is there already as part of the report."""
        self._written.add(name)

    def finish(self) -> int:
        """Remove what an earlier report left behind, and say how many bytes the report has."""
        n_bytes = 0
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir():
                if not any(path.iterdir()):
                    path.rmdir()
            elif path.relative_to(self.folder).as_posix() in self._written:
                n_bytes += path.stat().st_size
            else:
                path.unlink()
        return n_bytes
