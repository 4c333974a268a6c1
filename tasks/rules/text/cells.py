"""Cells of files that people open: a text is never a formula, a date or Markdown.

In a sheet, texts that a spreadsheet would treat as a formula or a date get a mark, which can be
removed.
"""

import csv
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from tasks.rules.text.characters import shows_nothing
from tasks.rules.text.json_text import plain_text

_SIGNS = "=+-@＝＋－＠"
_DATE = re.compile(r"'*\d+(?:[-/.:]\d+)+\Z")
"""Texts that spreadsheets may rewrite (dates and times) on opening a file, after any number of
marks.
"""
_FULL_CELL_CHARS = 32_000
"""Smallest length of a cell that a spreadsheet has cut (at 32,767 characters, where an emoji counts
as two).
"""
_MARK = "'"


class _Lines(list[str]):
    """The lines of a CSV file, with a line feed alone at the end of each record."""

    def write(self, record: str) -> None:
        self.append(record.removesuffix("\r\n") + "\n")


def csv_text(rows: Iterable[Iterable[Any]], *, must_quote: bool = False) -> str:
    """Return rows of safe cells as CSV; `must_quote` quotes them all.

    A cell with a line feed or a carriage return must be quoted, because readers begin a new record
    there. Before version 3.13, Python does so only if its records end with both characters.
    """
    lines = _Lines()
    writer = csv.writer(
        lines, lineterminator="\r\n", quoting=csv.QUOTE_ALL if must_quote else csv.QUOTE_MINIMAL
    )
    writer.writerows(rows)
    return "".join(lines)


def defused(text: str) -> str:
    """Return a text that is safe in a cell: marked if it would be a formula or a date."""
    return _MARK + text if _may_change(text) else text


def _may_change(text: str) -> bool:
    """Return whether a spreadsheet may run or rewrite a text."""
    return may_run(text) or _DATE.match(text) is not None


def may_run(text: str) -> bool:
    """Return whether a spreadsheet may treat a text as a formula, after any number of marks.

    Characters that show nothing before a sign do not hide it. It is False for texts that
    spreadsheets only rewrite, such as dates.
    """
    content = text.lstrip(_MARK)
    if content.startswith(("\t", "\r", "\n")):
        return True
    for char in content:
        if not shows_nothing(char):
            return char in _SIGNS
    return False


def defused_formula(text: str) -> str:
    """Return a text that is safe in a file for people, where dates may be rewritten.

    It is marked if it would be a formula, or if `without_mark` would take its own apostrophe for a
    mark.
    """
    looks_marked = without_mark(text) != text
    return _MARK + text if may_run(text) or looks_marked else text


def sheet_cell(value: Any) -> Any:
    """Return a value for a CSV file: numbers and None unchanged, other values as safe text."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | None):
        return defused_formula(plain_text(value))
    return value


_MARKDOWN = re.compile(
    r"[`*\]|~$]|(?<=!)\[|(?<=\])\(|(?<![^\W_])_|_(?![^\W_])|\\(?=[!-/:-@\[-`{-~]|\Z)"
)
"""Characters that mean something in a table of Markdown. Links and images need `](` or `]`; an
underscore within a word and a backslash before a letter mean nothing.
"""
_HTML = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
    }
)


def markdown_cell(text: str) -> str:
    """Return a text of one line so that Markdown shows it unchanged.

    It has no HTML, image, link, code or end of a cell.
    """
    return _MARKDOWN.sub(r"\\\g<0>", text.translate(_HTML))


def without_mark(cell: str) -> str:
    """Return the text of a cell; it undoes `defused` and `defused_formula` for every text."""
    text = cell.removeprefix(_MARK)
    return text if _may_change(text) else cell


def shows(cell: str, text: str) -> bool:
    """Return whether a cell still shows a text.

    Leading white space and marks, which spreadsheets change, are ignored. A cell that a spreadsheet
    has cut counts if it has the beginning of the text.
    """
    bare_cell = _bare(cell)
    bare_text = _bare(text)
    is_cut = len(cell) >= _FULL_CELL_CHARS
    return bare_cell == bare_text or (is_cut and bare_text.startswith(bare_cell))


def _bare(text: str) -> str:
    return " ".join(text.split()).lstrip(f"{_MARK} ")
