"""Tables of the report: the format of values, and headings that are linked to their cells."""

import re
from datetime import UTC, datetime
from html import unescape

import pytest

from tasks.figures.figure import Column
from tasks.figures.page import Page
from tasks.report.rendering.page_figures import table
from tasks.report.rendering.site import render
from tasks.rules.text.characters import visible


def _cells(html: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """The attributes and the content of each element."""
    elements = re.findall(rf"<{tag} ([^>]*)>(.*?)</{tag}>", html)
    return [
        (dict(re.findall(r'(\w+)="([^"]*)"', attributes)), content)
        for attributes, content in elements
    ]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("count", 12345, "12,345"),
        ("count", -3, "−3"),
        ("number", 0.125, "0.12"),
        ("score", 0.12349, "0.123"),
        ("score", -0.0004, "0.000"),
        ("signed", 0.0123, "+0.012"),
        ("signed", -0.0123, "−0.012"),
        ("signed", 0.0004, "0.000"),
        ("signed", 0.0, "0.000"),
        ("share", 0.1234, "12.3%"),
        ("coverage", 0.9996, "99.9%"),
        ("usd", 1234.567, "$1,234.57"),
        ("usd", -3.2, "−$3.20"),
        ("price", 0.00123, "$0.0012"),
        ("p", 0.00004, "0.0000"),
        ("yes", True, "yes"),
        ("yes", False, "–"),
        ("text", None, "–"),
        ("text", ["a", "b"], "a, b"),
        ("text", "<b>", "&lt;b&gt;"),
        (
            "time",
            datetime(2026, 11, 22, 1, 5, tzinfo=UTC),
            '<span class="date">2026-11-22 01:05</span>',
        ),
    ],
)
def test_a_value_is_written_as_its_kind_says(kind, value, text):
    html = table("figure", [Column("it", "It", kind)], [{"it": value}])

    ((_, content),) = _cells(html, "td")
    assert content == text


HIDING = "\u202egpj.txet\u202c a\u2066b\u200ec\u200bd\x1b[31m"
SHOWN = r"\u202egpj.txet\u202c a\u2066b\u200ec\u200bd\x1b[31m"


@pytest.mark.parametrize("kind", ["text", "task", "time"])
def test_characters_that_hide_or_reorder_text_are_visible_in_cells(kind):
    html = table(
        "figure",
        [Column("it", HIDING, kind, group=HIDING)],
        [{"it": HIDING, "address": "x"}],
    )

    assert SHOWN in _cells(html, "td")[0][1]
    assert [text for _, text in _cells(html, "th")] == [SHOWN, SHOWN]
    assert not set(HIDING) - set(SHOWN) & set(html)


@pytest.fixture(scope="module")
def hiding_page() -> str:
    """A page all of whose texts have characters that hide or reorder text."""
    page = Page("tasks", HIDING, "", (), template="list.html")
    report = {
        "heading": HIDING,
        "pages": [page],
        "footer": HIDING,
        "judge_configs": [HIDING],
        "models": [HIDING],
        "main": HIDING,
        "orders": {HIDING: [HIDING]},
    }
    return render(page, report)


def test_characters_that_hide_or_reorder_text_are_visible_everywhere_on_a_page(
    hiding_page,
):
    assert SHOWN in hiding_page
    assert SHOWN.replace("\\", "\\\\") in hiding_page  # in JSON
    assert not (set(HIDING) - set(SHOWN)) & set(hiding_page)
    assert r"\u202e" not in hiding_page.replace(r"\\u202e", "").replace(SHOWN, "")


def test_a_page_tells_its_scripts_the_characters_that_hide_or_reorder_text(
    hiding_page,
):
    [pattern] = re.findall(r'data-hidden="([^"]*)"', hiding_page)
    codes = re.sub(
        r"\\u\{(\w+)\}",
        lambda code: f"\\U{int(code[1], 16):08x}",
        unescape(pattern),
    )
    for number in range(0x110000):
        is_hidden = re.search(codes, chr(number)) is not None
        assert is_hidden == (visible(chr(number)) != chr(number)), number


def test_each_cell_names_its_heading_and_that_of_its_group():
    columns = [
        Column("model", "Model"),
        Column("low", "from", group="Interval"),
        Column("high", "to", group="Interval"),
    ]

    html = table("figure", columns, [{"model": "a", "low": 1, "high": 2}])

    headings = {}
    for attributes, text in _cells(html, "th"):
        headings[attributes["id"]] = (text, attributes["scope"])
    group = ("Interval", "colgroup")
    cell_headings = []
    for attributes, _ in _cells(html, "td"):
        cell_headings.append(
            [headings[name] for name in attributes["headers"].split()]
        )
    assert cell_headings == [
        [("Model", "col")],
        [group, ("from", "col")],
        [group, ("to", "col")],
    ]


def test_a_column_without_a_value_is_left_out():
    columns = [Column("model", "Model"), Column("cost", "Cost", "usd")]

    html = table("figure", columns, [{"model": "a", "cost": None}])

    assert [text for _, text in _cells(html, "th")] == ["Model"]
