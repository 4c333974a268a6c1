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
    """The records of a CSV file, which end in a line feed alone."""

    def write(self, record: str) -> None:
        self.append(record.removesuffix("\r\n") + "\n")


def csv_text(rows: Iterable[Iterable[Any]], *, must_quote: bool = False) -> str:
    """Return rows of safe cells as CSV; `must_quote` quotes them all.

    Readers begin a record after each line feed and each carriage return that is not in quotes.
    Python (before 3.13) quotes a cell with either only if records end in both.
    """
    lines = _Lines()
    writer = csv.writer(
        lines, lineterminator="\r\n", quoting=csv.QUOTE_ALL if must_quote else csv.QUOTE_MINIMAL
    )
    writer.writerows(rows)
    return "".join(lines)


def defused(text: str) -> str:
    """Return a text that is safe in a cell: with an apostrophe before it if it would be a formula
    or a date.
    """
    return _MARK + text if _may_change(text) else text


def _may_change(text: str) -> bool:
    return may_run(text) or _DATE.match(text) is not None


def may_run(text: str) -> bool:
    """Return whether a spreadsheet may treat a text as a formula, after any number of marks.

    Characters that show nothing before a sign do not hide it. It is False for texts that
    spreadsheets only rewrite, such as dates.
    """
    content = text.lstrip(_MARK)
    if content.startswith(("\t", "\r", "\n")):
        return True
    first = next((char for char in content if not shows_nothing(char)), None)
    return first is not None and first in _SIGNS


def not_run(text: str) -> str:
    """Return a text that is safe in a file for people, where dates may be rewritten.

    It gets an apostrophe before it if it might be run, or if it would lose one of its own when the
    file is read.
    """
    return _MARK + text if may_run(text) or as_before(text) != text else text


def sheet_cell(value: Any) -> Any:
    """Return a value for a CSV file: numbers and None unchanged, anything else as text that is not
    run.
    """
    return value if isinstance(value, int | float | Decimal | None) else not_run(str(value))


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
    """Return a text of one line so that Markdown shows it unchanged: no HTML, image, link, code or
    end of a cell.
    """
    return _MARKDOWN.sub(r"\\\g<0>", text.translate(_HTML))


def as_before(cell: str) -> str:
    """Return the text before it got a mark: `as_before` undoes `defused` and `not_run` for every
    text.
    """
    return cell[1:] if cell.startswith(_MARK) and _may_change(cell[1:]) else cell


def shows(cell: str, text: str) -> bool:
    """Return whether a cell still shows a text.

    Leading white space and marks, which spreadsheets change, are ignored. A cell that a spreadsheet
    has cut counts if it has the beginning of the text.
    """
    shown = _bare(cell)
    meant = _bare(text)
    return shown == meant or (len(cell) >= _FULL_CELL_CHARS and meant.startswith(shown))


def _bare(text: str) -> str:
    return " ".join(text.split()).lstrip(f"{_MARK} ")
