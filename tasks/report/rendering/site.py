"""The folder of a report: changed files, assets, and pages made from templates."""

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tasks.figures.page import GROUPS, Page
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.characters import HIDDEN_IN_SCRIPTS, visible, with_visible_texts
from tasks.rules.text.numbers import counted
from warehouse import file_lock, write_atomically
from warehouse.files import hash_of, hash_of_document

_MARK = "report.json"
"""The file that marks a folder as a report and lists the files with their sizes and hashes; it is
written last. Only a folder with this file, or an empty one, is written to.
"""
_HASH_HEX = 16
_FORMAT = "prbench-report"
_VERSION = 3
_INPUTS = "inputs"
"""The key of the hashes of what the report was made from."""
RESULTS = "results"
"""The name of the hash of everything that data files are made from."""
_SEAL = "sha256"
"""The key of the hash of all other values, which early reports lack."""
_LOCK = "report.lock"
"""The lock that a process holds while it writes reports into a folder."""
_DATA = re.compile(r"data/[0-9a-f]{16}\.js")
"""Data files, whose names are hashes (`tasks.report.drilldown.blocks`)."""
_OURS = re.compile(rf"{_DATA.pattern}|(\w+/)?\.[0-9a-f]{{32}}\.tmp|report-basis\.txt")
"""Names of files that only a report can have written: data files, partly written files, and one
that reports of 0.3.0 had.
"""


Hashes = Mapping[str, str]
"""Hashes of what a report is made from, by name."""
NO_HASHES: Hashes = {}


class Site:
    """The folder of a report. Files that are not the report's are not changed.

    Open pages keep working, even if a build is killed: files that a page loads are written before
    the page, and data files of the previous report stay until the next build.
    """

    def __init__(self, folder: Path, inputs: Hashes = NO_HASHES) -> None:
        """Open the folder; it is created if it is missing.

        Args:
            folder: the folder.
            inputs: hashes of what the report is made from, for `stored_inputs`.

        Raises:
            UsageError: it has other content than a report, or a report of a later version.
        """
        refuse_other(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        mark = _mark_of(folder)
        self._earlier_names = set(mark.get("files", {}))
        self._earlier_hashes: dict[str, str] = mark.get("hashes", {})
        self._earlier_inputs: Hashes = mark.get(_INPUTS, {})
        self._hashes: dict[str, str] = {}
        self._inputs = inputs
        if not self._earlier_names:
            self._write_mark({})

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, unless it exists with the same content."""
        data = content if isinstance(content, bytes) else content.encode()
        path = self.folder / name
        self._hashes[name] = hashlib.sha256(data).hexdigest()[:_HASH_HEX]
        if not path.is_file() or path.read_bytes() != data:
            write_atomically(path, data)

    def keep(self, name: str) -> bool:
        """Keep a file of the report before this one, if it is undamaged; return whether this report
        has a file of this name now.
        """
        if name in self._hashes:
            return True
        file_hash = self._earlier_hashes.get(name)
        if file_hash is None or not _has_hash(self.folder / name, file_hash):
            return False
        self._hashes[name] = file_hash
        return True

    def keeps_data(self) -> bool:
        """Keep all data files of the report before this one, if they are undamaged and made from
        the same results; return whether they are.
        """
        results = self._inputs.get(RESULTS)
        if results is None or results != self._earlier_inputs.get(RESULTS):
            return False
        return all(self.keep(name) for name in self._earlier_names if name.startswith("data/"))

    def forget_inputs(self) -> None:
        """Make the next build write the report again, because this one lacks something."""
        self._inputs = NO_HASHES

    def finish(self) -> int:
        """Remove unneeded files, list the others, and return their total size in bytes."""
        sizes = {name: (self.folder / name).stat().st_size for name in sorted(self._hashes)}
        # Data files of the last report stay until the next build, when they are leftovers.
        unneeded_names = {name for name in self._earlier_names if not _DATA.fullmatch(name)}
        unneeded_names |= _leftovers(self.folder, self._earlier_names)
        for name in sorted(unneeded_names - sizes.keys()):
            path = self.folder / name
            # No file is removed through a link to another folder; a folder is removed with its last
            # file.
            if path.parent.resolve().is_relative_to(self.folder.resolve()):
                with suppress(OSError):
                    path.unlink()
                    path.parent.rmdir()
        self._write_mark(sizes)
        return sum(sizes.values()) + (self.folder / _MARK).stat().st_size

    def _write_mark(self, sizes: Mapping[str, int]) -> None:
        mark: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "files": sizes,
            "hashes": {name: self._hashes[name] for name in sizes},
            _INPUTS: self._inputs if sizes else {},
        }
        mark[_SEAL] = hash_of_document(mark)
        write_atomically(self.folder / _MARK, f"{json.dumps(mark, indent=0)}\n".encode())


def _mark_of(folder: Path) -> dict[str, Any]:
    """Return the mark of a report; empty if it is missing, damaged or another tool's."""
    try:
        mark = json.loads((folder / _MARK).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(mark, dict) or mark.get("format") != _FORMAT or "version" not in mark:
        return {}
    seal = mark.pop(_SEAL, None)
    is_damaged = seal is not None and seal != hash_of_document(mark)
    return {} if is_damaged else mark


def _listed_sizes(folder: Path) -> dict[str, int]:
    """Return the files of the report in a folder with their sizes."""
    sizes: dict[str, int] = _mark_of(folder).get("files", {})
    return sizes


def _leftovers(folder: Path, listed_names: Collection[str]) -> set[str]:
    """Return the names of files in a folder that only a report can have written, without the listed
    ones.
    """
    paths = (*folder.glob("*/*"), *folder.iterdir())
    names = (path.relative_to(folder).as_posix() for path in paths)
    return {name for name in names if _OURS.fullmatch(name) and name not in listed_names}


def stored_inputs(folder: Path) -> Hashes:
    """Return the hashes of what the report in a folder was made from; empty if they are unknown."""
    hashes: Hashes = _mark_of(folder).get(_INPUTS, {})
    return hashes


def size_if_undamaged(folder: Path) -> int | None:
    """Return the size of the report in a folder in bytes, or None if a file is missing, damaged or
    to be removed.

    All files are read.
    """
    hashes = _mark_of(folder).get("hashes", {})
    if not hashes or _leftovers(folder, hashes):
        return None
    for name, file_hash in hashes.items():
        if not _has_hash(folder / name, file_hash):
            return None
    return sum(_listed_sizes(folder).values()) + (folder / _MARK).stat().st_size


def _has_hash(path: Path, file_hash: str) -> bool:
    return path.is_file() and hash_of(path)[:_HASH_HEX] == file_hash


def is_whole(folder: Path) -> bool:
    """Return whether a folder has a report with all its files, each in the listed size."""
    sizes = _listed_sizes(folder)
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            return False
    return bool(sizes)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock for writing reports into a folder; wait for another holder.

    Raises:
        UsageError: it has other content than a report, or a report of a later version.
    """
    refuse_other(folder)
    with file_lock(folder / _LOCK, wait=True):
        yield


def report_files(folder: Path) -> list[str]:
    """Return the files in a report folder that reports wrote, without any other files."""
    names = []
    for mark in (folder / _MARK, *folder.glob(f"*/{_MARK}")):
        if not mark.is_file():
            continue
        for name in (*_listed_sizes(mark.parent), _MARK):
            path = mark.parent / name
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                names.append(path.relative_to(folder).as_posix())
    return sorted(set(names))


def refuse_other(folder: Path) -> None:
    """Refuse a folder with other content than a report; a missing or empty one is accepted.

    Raises:
        UsageError: it has other content, or a report of a later version.
    """
    mark = _mark_of(folder)
    if mark:
        if mark["version"] not in range(1, _VERSION + 1):
            raise UsageError(
                f"{folder}: is a report of another version of prbench; name a new folder"
            )
        return
    is_file = folder.exists() and not folder.is_dir()
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    is_empty = all(name == _LOCK or _OURS.fullmatch(name) for name in names)
    # A damaged mark is written again.
    has_styles = _MARK in names and (folder / "assets/report.css").is_file()
    if is_file or not (is_empty or has_styles):
        raise UsageError(
            f"{folder}: has files that are not a report; name an empty folder or a new one"
        )


LIBRARIES = {"vega.js", "tabulator.js", "tabulator.css"}
"""Libraries built with the package (`.ci/libraries.py`): Vega, Vega-Lite and Vega-Embed in one
file, and Tabulator.
"""
ASSETS = Path(__file__).parents[1] / "assets"
"""The folder of the pages' assets."""


def copy_assets(site: Site, names: Collection[str] | None = None) -> None:
    """Copy styles, scripts and libraries into a report: all, or the named ones.

    Raises:
        PipelineError: a library is missing.
    """
    paths = sorted(ASSETS.iterdir())
    missing_names = LIBRARIES - {path.name for path in paths}
    if missing_names:
        raise PipelineError(
            f"{ASSETS / min(missing_names)}: missing; `uv sync --reinstall-package"
            " prbench-pipeline` builds it"
        )
    for path in paths:
        if names is None or path.name in names:
            site.write(f"assets/{path.name}", path.read_bytes())


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src"
    " 'none'; connect-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""The pages' content-security policy: nothing from other sites, no inline script or style, no
evaluation of text.
"""
SERVED_POLICY = re.sub("(connect-src|form-action) 'none'", r"\1 'self'", POLICY)
"""The content-security policy of served pages, which may also call their server."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b( \d\d:\d\d\b( UTC)?)?")


@cache
def templates() -> Environment:
    """Return the environment of the templates, which escapes what is not marked as HTML."""
    loader = FileSystemLoader(Path(__file__).parents[1] / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["dated"] = dated
    environment.policies["json.dumps_function"] = _json
    environment.globals["counted"] = counted
    environment.globals["grouped_pages"] = grouped_pages
    environment.globals["hidden_characters"] = HIDDEN_IN_SCRIPTS
    return environment


def _shown(value: Any) -> Any:
    """Return a value with its hidden characters visible; HTML is returned unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _json(value: Any, **_: Any) -> str:
    return json.dumps(with_visible_texts(value), separators=(",", ":"), default=str)


def grouped_pages(pages: Sequence[Page]) -> list[tuple[str, list[Page]]]:
    """Return the groups of the navigation that have pages, with these."""
    ordered = sorted(pages, key=lambda page: GROUPS.index(page.group))
    return [(group, list(members)) for group, members in groupby(ordered, attrgetter("group"))]


def dated(text: str) -> Markup:
    """Return a text as HTML in which dates do not wrap and hidden characters are visible.

    HTML is returned unchanged.
    """
    if isinstance(text, Markup):
        return text
    return Markup(_DATE.sub(r'<span class="date">\g<0></span>', str(escape(visible(text)))))


Values = Mapping[str, Any]
"""Values for a template, by name."""


def render(page: Page, report: Values, *, policy: str = POLICY, **values: Any) -> str:
    """Return a page as HTML; `report` are the values that every page shows."""
    template = templates().get_template(page.template)
    return template.render(page=page, report=report, policy=policy, **values)
