"""Cells of files that people open: no text in them is run, and Markdown shows it unchanged."""

from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pyromark
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tasks.rules.text.cells import as_before, markdown_cell, sheet_cell

ELEMENTS = {"table", "thead", "tbody", "tr", "th", "td"}
ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![a chart](http://x.invalid/x.png)",
    "[more](javascript:alert(1))",
    "[a]: javascript:alert(1) [a]",
    "<javascript:alert(1)>",
    "&lt;script&gt; &#106;avascript:",
    "a | b \\| c \\\\| d",
    "`<b>` ``` ` ``",
    "**bold** __bold__ _it_ *it* ~~out~~ a_name",
    "$x$ \\(x\\) # - 1. >",
    "ends in a backslash \\",
)
PIECES = st.sampled_from([*"[]()!<>`*_~|\\&$#:-aé1 ", "&lt;", "&#60;", "](", "![", "<b>", "javascript:", "</td>"])


class Table(HTMLParser):
    """The elements and the cells of a table."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def _rendered(text: str) -> list[Table]:
    table = f"| a | b |\n| --- | --- |\n| {markdown_cell(text)} | x |\n"
    github_like = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    options = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
    return [Table(github_like.render(table)), Table(pyromark.html(table, options=options))]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_a_cell_of_markdown_is_shown_as_text(attack: str) -> None:
    for table in _rendered(attack):
        assert table.elements == ELEMENTS
        assert [cell.strip() for cell in table.cells if cell.strip()] == ["a", "b", attack, "x"]


@given(st.lists(PIECES, min_size=1, max_size=12).map("".join))
@example("a\\")
@example("|")
def test_markdown_shows_a_cell_unchanged(text: str) -> None:
    for table in _rendered(text):
        assert table.elements == ELEMENTS
        cells = [cell.strip("\n") for cell in table.cells[:4]]
        assert [cells[0], cells[1], cells[3].strip()] == ["a", "b", "x"]
        assert cells[2].strip() == text.strip()


@pytest.mark.parametrize("value", [-1, 0.5, Decimal("-1.5"), True, None])
def test_numbers_in_a_sheet_stay_numbers(value: Any) -> None:
    assert sheet_cell(value) is value


@given(st.text("'=+-@\t\r\n a1", max_size=8))
def test_no_text_in_a_sheet_is_run(text: str) -> None:
    cell = sheet_cell(text)

    assert as_before(cell) == text
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
