"""Tables of the report: the format of values, and headings that are linked to their cells."""

import re
from datetime import UTC, datetime

import pytest

from tasks.figures.figure import Column, Kind
from tasks.report.rendering.page_figures import table


def _cells(html: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """The attributes and the content of each element."""
    actual = re.findall(rf"<{tag} ([^>]*)>(.*?)</{tag}>", html)
    return [(dict(re.findall(r'(\w+)="([^"]*)"', attributes)), content) for attributes, content in actual]


@pytest.mark.parametrize(("kind", "value", "shown"), [
    ("count", 12345, "12,345"), ("count", -3, "−3"), ("number", 0.125, "0.12"), ("score", 0.12349, "0.123"),
    ("score", -0.0004, "0.000"), ("signed", 0.0123, "+0.012"), ("signed", -0.0123, "−0.012"),
    ("signed", 0.0004, "0.000"), ("signed", 0.0, "0.000"), ("share", 0.1234, "12.3%"), ("coverage", 0.9996, "99.9%"),
    ("usd", 1234.567, "$1,234.57"),
    ("usd", -3.2, "−$3.20"), ("price", 0.00123, "$0.0012"), ("p", 0.00004, "0.0000"), ("yes", True, "yes"),
    ("yes", False, "–"), ("text", None, "–"), ("text", ["a", "b"], "a, b"), ("text", "<b>", "&lt;b&gt;"),
    ("time", datetime(2026, 11, 22, 1, 5, tzinfo=UTC), '<span class="date">2026-11-22 01:05</span>'),
])  # fmt: skip
def test_a_value_is_written_as_its_kind_says(kind: Kind, value: object, shown: str) -> None:
    ((_, content),) = _cells(table("figure", [Column("it", "It", kind)], [{"it": value}]), "td")
    assert shown == content


def test_each_cell_names_its_heading_and_that_of_the_group_above_and_an_empty_column_is_left_out() -> None:
    columns = [
        Column("model", "Model"), Column("cost", "Cost", "usd"), Column("low", "from", group="Interval"),
        Column("high", "to", group="Interval"),
    ]  # fmt: skip
    html = table("figure", columns, [{"model": "a", "cost": None, "low": 1, "high": 2}])
    headings = {attributes["id"]: (text, attributes["scope"]) for attributes, text in _cells(html, "th")}

    group = ("Interval", "colgroup")
    of_cells = [[headings[each] for each in attributes["headers"].split()] for attributes, _ in _cells(html, "td")]
    assert [[("Model", "col")], [group, ("from", "col")], [group, ("to", "col")]] == of_cells
