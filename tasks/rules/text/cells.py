"""Cells of a sheet: what a spreadsheet would take for a formula or a date is marked, which can be taken off again."""

import re
from collections.abc import Iterator

_RUN = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")
"""What spreadsheets may execute when they open a file, behind any number of marks."""
_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠]|\d+(?:[-/.:]\d+)+\Z)")
"""What spreadsheets may execute or, as dates and times, rewrite when they open a file, behind any number of marks."""
_FULL_CELL_CHARS = 32_000
"""No cell that is cut where spreadsheets end one (32,767 characters, of which an emoji counts as two) has fewer."""
_MARK = "'"


def defused(text: str) -> str:
    """Return a text that is safe in a cell: with an apostrophe in front if it would be a formula or a date."""
    return _MARK + text if _FORMULA.match(text) else text


def may_run(text: str) -> bool:
    """Return whether a spreadsheet may take a text for a formula.

    It is False for texts that it only rewrites, such as dates.
    """
    return _RUN.match(text) is not None


def not_run(text: str) -> str:
    """Return a text that is safe in a file that is not read back.

    It gets an apostrophe in front if it might be run.
    """
    return _MARK + text if may_run(text) else text


def as_before(cell: str) -> str:
    """Return the text before it was defused: `as_before(defused(text)) == text` for every text."""
    return cell[1:] if cell.startswith(_MARK) and _FORMULA.match(cell[1:]) else cell


def readings(cell: str) -> Iterator[str]:
    """Yield the possible texts of a cell: its text, and the one before a sheet marked it against spreadsheets."""
    yield cell
    if (before := as_before(cell)) != cell:
        yield before


def shows(cell: str, text: str) -> bool:
    """Return whether a cell still shows a text.

    White space and marks in front, which spreadsheets change, do not count. A cell that a spreadsheet cut for its
    length counts if it shows the beginning of the text.
    """
    shown, meant = _bare(cell), _bare(text)
    return shown == meant or (len(cell) >= _FULL_CELL_CHARS and meant.startswith(shown))


def _bare(text: str) -> str:
    return " ".join(text.split()).lstrip(f"{_MARK} ")
