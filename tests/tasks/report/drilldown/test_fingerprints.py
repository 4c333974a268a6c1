"""The fingerprint by which a later build finds what changed: it rests on everything that is shown."""

import re

import sql

_FUNCTIONS = {"coalesce", "if", "null", "ternary_as_binary"}


def words(text: str) -> set[str]:
    """The names in a piece of SQL."""
    return set(re.findall(r"[a-z_]+", text))


def test_everything_that_the_pages_show_is_in_the_fingerprint() -> None:
    query = sql.read("report/drilldown/sections")
    shown = re.findall(r"list\((?:to_json\()?\{(.*?)\}", query, re.DOTALL)
    values = [each.partition(":")[2] for one in shown for each in re.split(r",(?=\s+(?:--[^\n]*\s+)*\w+:)", one)]

    assert (4, 45) == (len(shown), len(values))
    assert set().union(*map(words, values)) - _FUNCTIONS <= words(sql.read("report/drilldown/blocks"))
