"""Cells of a sheet: what a spreadsheet would take for a formula is marked, and the mark can be taken off again."""

import re

_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠])")
"""What spreadsheets may execute when they open a file, behind any number of marks."""
_MARK = "'"


def defused(text: str) -> str:
    """A text as it can stand in a cell: with an apostrophe in front where it would be a formula."""
    return _MARK + text if _FORMULA.match(text) else text


def as_before(cell: str) -> str:
    """The text that was defused: `as_before(defused(text)) == text` for every text."""
    return cell[1:] if cell.startswith(_MARK) and _FORMULA.match(cell[1:]) else cell
