"""The fingerprint by which a later build finds what changed: it rests on everything that is shown."""

import re

import pytest

import sql

_FUNCTIONS = {"coalesce", "if", "null", "ternary_as_binary"}


def words(text: str) -> set[str]:
    """The names in a piece of SQL."""
    return set(re.findall(r"[a-z_]+", text))


@pytest.mark.parametrize("name", ["answers", "verdicts", "points", "grounds"])
def test_everything_that_the_pages_show_is_in_the_fingerprint(name: str) -> None:
    query = sql.read(f"report/drilldown/{name}")
    (shown,) = re.findall(r"list\((?:to_json\()?\{(.*?)\}", query, re.DOTALL)[:1]
    values = [each.partition(":")[2] for each in re.split(r",(?=\s+(?:--[^\n]*\s+)?\w+:)", shown)]

    assert len(values) >= 5
    assert set().union(*map(words, values)) - _FUNCTIONS <= words(sql.read("report/drilldown/fingerprints"))
