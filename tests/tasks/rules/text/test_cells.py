"""Cells of files that people open: no text in them is run, and Markdown shows it unchanged."""

import csv
import io
from decimal import Decimal
from html.parser import HTMLParser

import pyromark
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tasks.rules.text.cells import (
    csv_text,
    defused,
    markdown_cell,
    may_run,
    sheet_cell,
    shows,
    without_mark,
)

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
PIECES = st.sampled_from(
    [
        *"[]()!<>`*_~|\\&$#:-aé1 ",
        "&lt;",
        "&#60;",
        "](",
        "![",
        "<b>",
        "javascript:",
        "</td>",
    ]
)


class Table(HTMLParser):
    """The elements and the cells of a table."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.elements.add(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data: str):
        if self.cells:
            self.cells[-1] += data


def _rendered(text: str) -> list[Table]:
    table = f"| a | b |\n| --- | --- |\n| {markdown_cell(text)} | x |\n"
    github_like = MarkdownIt("commonmark", {"html": True}).enable(
        ["table", "strikethrough"]
    )
    options = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
    return [
        Table(github_like.render(table)),
        Table(pyromark.html(table, options=options)),
    ]


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_a_cell_of_markdown_is_shown_as_text(attack):
    for table in _rendered(attack):
        cells = [cell.strip() for cell in table.cells if cell.strip()]
        assert table.elements == ELEMENTS
        assert cells == ["a", "b", attack, "x"]


@given(st.lists(PIECES, min_size=1, max_size=12).map("".join))
@example("a\\")
@example("|")
def test_markdown_shows_a_cell_unchanged(text):
    for table in _rendered(text):
        assert table.elements == ELEMENTS
        cells = [cell.strip("\n") for cell in table.cells[:4]]
        assert [cells[0], cells[1], cells[3].strip()] == ["a", "b", "x"]
        assert cells[2].strip() == text.strip()


@pytest.mark.parametrize("value", [-1, 0.5, Decimal("-1.5"), None])
def test_numbers_in_a_sheet_stay_numbers(value):
    assert sheet_cell(value) is value


@given(st.text("'=+-@\t\r\n a1", max_size=8))
def test_no_text_in_a_sheet_is_run(text):
    cell = sheet_cell(text)

    assert without_mark(cell) == text
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize(
    "hiding",
    ["\u200b", "\u202e", "\ufeff", "\xad", "\x00", "\u3164", "\ufe0f", " \u2060 "],
)
@pytest.mark.parametrize("sign", "=+-@＝")
def test_characters_that_show_nothing_do_not_hide_a_formula(hiding, sign):
    text = f"{hiding}{sign}1+1"

    assert may_run(text)
    assert may_run(f"'{text}")
    assert without_mark(defused(text)) == text
    assert without_mark(sheet_cell(text)) == text


@pytest.mark.parametrize(
    "text", ["", "\u200b", "\u200ba", "'", "'tis", "a=1", "\u200b1-2", "−1"]
)
def test_a_text_that_does_not_begin_with_a_sign_is_no_formula(text):
    assert not may_run(text)
    assert sheet_cell(text) == text


@pytest.mark.parametrize("must_quote", [False, True])
@given(
    st.lists(
        st.text("a=+-@'\"\r\n\t ,;1\u200b\u2028", max_size=8), min_size=1, max_size=4
    )
)
@example(["a\r=1+1", "1"])
@example(["\r=1+1"])
@example(["a\n=1+1"])
def test_no_record_of_a_csv_file_begins_within_a_text(must_quote, texts):
    content = csv_text(
        [["a"] * len(texts), [sheet_cell(text) for text in texts]],
        must_quote=must_quote,
    )

    header, record = csv.reader(io.StringIO(content, newline=""), strict=True)
    assert header == ["a"] * len(texts)
    assert [without_mark(cell) for cell in record] == texts


FULL = "x" * 32_000


@pytest.mark.parametrize(
    ("cell", "text", "is_shown"),
    [
        ("'=1 + 1", "=1  + 1", True),
        ("the beginning", "the beginning of a text", False),
        (FULL, f"{FULL} and more", True),
        (FULL, f"y{FULL}", False),
    ],
)
def test_only_a_cell_that_a_spreadsheet_has_cut_may_lack_the_end_of_its_text(
    cell, text, is_shown
):
    assert shows(cell, text) == is_shown
