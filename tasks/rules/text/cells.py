"""Cells of files that people open: a text is never a formula, a date or Markdown.

In a sheet, texts that a spreadsheet would treat as a formula or a date get a mark, which can be removed.
"""

import re
from decimal import Decimal
from typing import Any

_RUN = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")
"""Texts that spreadsheets may execute when they open a file, after any number of marks."""
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠]|\d+(?:[-/.:]\d+)+\Z)")
"""Texts that spreadsheets may execute or rewrite (dates and times) on opening a file, after any number of marks."""
_FULL_CELL_CHARS = 32_000
"""Smallest length of a cell that a spreadsheet has cut (at 32,767 characters, where an emoji counts as two)."""
_MARK = "'"


def defused(text: str) -> str:
    """Return a text that is safe in a cell: with an apostrophe before it if it would be a formula or a date."""
    return _MARK + text if _FORMULA.match(text) else text


def may_run(text: str) -> bool:
    """Return whether a spreadsheet may treat a text as a formula.

    It is False for texts that spreadsheets only rewrite, such as dates.
    """
    return _RUN.match(text) is not None


def not_run(text: str) -> str:
    """Return a text that is safe in a file for people, where dates may be rewritten.

    It gets an apostrophe before it if it might be run, or if it would lose one of its own when the file is read.
    """
    return _MARK + text if may_run(text) or as_before(text) != text else text


def sheet_cell(value: Any) -> Any:
    """Return a value for a CSV file: numbers and None unchanged, anything else as text that is not run."""
    return value if isinstance(value, int | float | Decimal | None) else not_run(str(value))


_MARKDOWN = re.compile(r"[`*\]|~$]|(?<=!)\[|(?<=\])\(|(?<![^\W_])_|_(?![^\W_])|\\(?=[!-/:-@\[-`{-~]|\Z)")
"""Characters that mean something in a table of Markdown. Links and images need `](` or `]`; an underscore within a word
and a backslash before a letter mean nothing."""
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def markdown_cell(text: str) -> str:
    """Return a text of one line so that Markdown shows it unchanged: no HTML, image, link, code or end of a cell."""
    return _MARKDOWN.sub(r"\\\g<0>", text.translate(_HTML))


def as_before(cell: str) -> str:
    """Return the text before it got a mark: `as_before` undoes `defused` and `not_run` for every text."""
    return cell[1:] if cell.startswith(_MARK) and _FORMULA.match(cell[1:]) else cell


def shows(cell: str, text: str) -> bool:
    """Return whether a cell still shows a text.

    Leading white space and marks, which spreadsheets change, are ignored. A cell that a spreadsheet has cut counts if
    it has the beginning of the text.
    """
    shown, meant = _bare(cell), _bare(text)
    return shown == meant or (len(cell) >= _FULL_CELL_CHARS and meant.startswith(shown))


def _bare(text: str) -> str:
    return " ".join(text.split()).lstrip(f"{_MARK} ")
