"""Data Docs: a page for each frame that a suite looked at, and an index, in a folder that can be opened from disk.

The pages load one style sheet that lies beside them, hold no script, and forbid everything else by their
content-security policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from expectations.rendering import Section
from warehouse.files.atomic import write_atomically

INDEX = "index.html"
_TEMPLATES = Path(__file__).parent / "pages"
_STYLE = "style.css"


@dataclass(frozen=True)
class Checked:
    """What the latest run of a suite found in one frame: rows looked at, expectations, and how many of them failed."""

    suite: str
    frame: str
    run_id: str
    checked_at: datetime
    n_rows: int
    n_expectations: int
    n_failed: int

    @property
    def page(self) -> str:
        """The name of its page."""
        return page_name(self.suite, self.frame)


def page_name(suite: str, frame: str) -> str:
    """The file that tells what a suite found in a frame."""
    return f"{suite}-{frame}.html"


def write_docs(
    folder: Path,
    subject: str,
    checked: Sequence[Checked],
    pages: Mapping[tuple[str, str], Sequence[Section]],
    home: str = "../index.html",
) -> None:
    """Write pages and the index of all that was ever checked; pages that are not given stay as they are.

    Each file is replaced whole, the index last. Only one process may write to a folder at a time.

    Args:
        folder: where to; it is made if it is missing.
        subject: what was checked, in words.
        checked: what the latest runs found, for the index.
        pages: by suite and frame, what was found now; a frame without rows has no sections.
        home: where the pages' link to the report leads.

    Raises:
        OSError: the folder cannot be written to.
    """
    templates = _templates()
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink()
    _write(folder / _STYLE, (_TEMPLATES / _STYLE).read_text(encoding="utf-8"))
    common = {"subject": subject, "home": home, "style": _STYLE, "index": INDEX}
    for each in checked:
        if (each.suite, each.frame) in pages:
            sections = pages[each.suite, each.frame]
            page = templates.get_template("page.html").render(common, checked=each, sections=sections)
            _write(folder / each.page, page)
    there = {each.page for each in checked if (folder / each.page).exists()}
    _write(folder / INDEX, templates.get_template("index.html").render(common, checked=checked, there=there))


def _write(path: Path, text: str) -> None:
    """Put a file in place, unless the same is there."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        write_atomically(path, content)


def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["utc"] = lambda moment: moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return environment
