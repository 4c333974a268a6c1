"""The folder of a report: files, written only where they changed; what all pages load; pages from templates."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import number
from warehouse import WarehouseBusy, file_lock, write_atomically

_MARK = "report.json"
"""The file that makes a folder a report's own; only such a folder, or an empty one, is written to."""
_FORMAT, _VERSION = "prbench-report", 2
LIST = "report-files.txt"
"""The names of the files that reports have put there, one a line: nothing else is ever taken away."""
_LOCK = "report.lock"
"""Held by the one who writes reports into a folder."""
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.tmp")
"""Names of files whose writing was cut off (`warehouse.files`)."""


class Site:
    """A report's folder. A page that is open goes on working, since what it loads is put in place before it.

    Every file is in the list before it is there, and leaves the list after it is gone, so that a build that is killed
    leaves no file that a later one does not know. What people put into the folder stays.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder; it is made if it is missing.

        Raises:
            UsageError: something else than a report is there, or a report of a later version.
        """
        self.folder = folder
        self._written: set[str] = {_MARK, LIST}
        self._lock = Lock()
        refuse_other(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._earlier_names = self._earlier()
        self._listed = set(self._earlier_names)
        self._unfinished = self._cut_off()
        self.write(_MARK, json.dumps({"format": _FORMAT, "version": _VERSION}) + "\n")

    def _earlier(self) -> set[str]:
        """What earlier reports have put there; the end of a list whose writing was cut off is taken away."""
        path = self.folder / LIST
        found = path.read_bytes() if path.is_file() else b""
        whole = found[: found.rfind(b"\n") + 1]
        if whole != found:
            write_atomically(path, whole)
        return set(whole.decode(errors="replace").splitlines())

    def _cut_off(self) -> set[str]:
        """Files of ours whose writing was cut off."""
        folders = {self.folder, *((self.folder / name).parent for name in self._listed)}
        found = (path for folder in folders if self._holds(folder) for path in folder.glob(".*.tmp"))
        return {path.relative_to(self.folder).as_posix() for path in found if _UNFINISHED.fullmatch(path.name)}

    def _holds(self, folder: Path) -> bool:
        """Whether a folder is there and is below this one, also where a link or a broken list leads elsewhere."""
        return folder.is_dir() and folder.resolve().is_relative_to(self.folder.resolve())

    def write(self, name: str, content: str | bytes) -> None:
        """Put a file in place, unless the same is there."""
        data = content.encode() if isinstance(content, str) else content
        path = self.folder / name
        self.keep(name)
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)

    def had(self, name: str) -> bool:
        """Whether an earlier report put a file of this name there, which may be gone or harmed since."""
        return name in self._earlier_names

    def keep(self, name: str) -> None:
        """Count a file that is there already, or is about to be, as part of the report."""
        with self._lock:
            self._written.add(name)
            if name not in self._listed:
                self._listed.add(name)
                with (self.folder / LIST).open("a", encoding="utf-8") as file:
                    file.write(f"{name}\n")

    def finish(self) -> int:
        """Remove what earlier reports left behind, and say how many bytes the report has."""
        for name in sorted((self._listed | self._unfinished) - self._written):
            self._remove(self.folder / name)
        self.write(LIST, "".join(f"{name}\n" for name in sorted(self._written)))
        return sum((self.folder / name).stat().st_size for name in self._written)

    def _remove(self, path: Path) -> None:
        """Remove a file, and the folders that are empty then."""
        folder = path.parent
        if not self._holds(folder) or not (path.is_file() or path.is_symlink()):
            return
        path.unlink()
        while folder != self.folder and not folder.is_symlink() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Be the only one who writes reports into a folder; who has to wait for another one says so.

    Raises:
        UsageError: something else than a report is there, or a report of a later version.
    """
    refuse_other(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder / _LOCK, wait=False))
        except WarehouseBusy:
            notice(f"{folder}: another run is writing its report there; this one waits for it")
            stack.enter_context(file_lock(folder / _LOCK, wait=True))
        yield


def report_files(folder: Path) -> list[str]:
    """The names of the files that reports have put into a report folder; what people put there is not among them."""
    lists = [path for path in (folder / LIST, *folder.glob(f"*/{LIST}")) if path.is_file()]
    named = {path.parent / name for path in lists for name in path.read_text(encoding="utf-8").splitlines()}
    inside = (path for path in named - {*lists} if path.resolve().is_relative_to(folder.resolve()))
    return sorted(path.relative_to(folder).as_posix() for path in inside if path.is_file())


def refuse_other(folder: Path) -> None:
    """Refuse a folder that holds something else than a report; a missing or empty one may become one.

    Raises:
        UsageError: something else is there, or a report of a later version.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file; name a folder for the report")
    if folder.exists() and not _is_report(folder):
        raise UsageError(f"{folder}: holds other files than a report; name an empty folder or a new one")


def _is_report(folder: Path) -> bool:
    """Whether an earlier report made a folder, or nobody has put anything there."""
    try:
        mark = json.loads((folder / _MARK).read_bytes())
    except FileNotFoundError:
        begun = (path.name for path in folder.iterdir())
        return all(name in {_LOCK, LIST} or _UNFINISHED.fullmatch(name) for name in begun)
    except (OSError, ValueError):
        return False
    if not isinstance(mark, dict) or mark.get("format") != _FORMAT:
        return False
    if mark.get("version") not in range(1, _VERSION + 1):
        raise UsageError(f"{folder}: is a report of another version of prbench; name a new folder")
    return True


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


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'none'; "
    "connect-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""The pages' content-security policy: nothing from elsewhere, no inline script or style, no evaluation of text."""
SERVED_POLICY = POLICY.replace("connect-src 'none'", "connect-src 'self'").replace(
    "form-action 'none'", "form-action 'self'"
)
"""That of the pages that a server makes: they may ask it again."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b( \d\d:\d\d\b( UTC)?)?")


@cache
def templates() -> Environment:
    """The templates, with escaping for everything that is not marked as HTML."""
    folder = Path(__file__).parents[1] / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "dated": dated}
    return environment


def dated(text: str) -> Markup:
    """Return a text as HTML whose dates, with their times, stay on one line; HTML stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(_DATE.sub(r'<span class="date">\g<0></span>', str(escape(text))))


def render(template: str, *, policy: str = POLICY, **values: Any) -> str:
    """A page."""
    return templates().get_template(template).render(policy=policy, **values)


def as_json(value: Any) -> Markup:
    """JSON that can stand in a page's data block and in a script: nothing in it ends the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
