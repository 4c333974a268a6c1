"""Expectations in SQL: whether any row of a table breaks one.

The condition is made from the arguments that Great Expectations gets. It may also hold for rows that
Great Expectations accepts, which then decides; a row that breaks the expectation always meets it.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from string import Formatter
from typing import Any

from expectations import IS_NOT_OK, IS_OK, Expectation

_CONDITIONS = {
    "ExpectColumnPairValuesToBeEqual": "{column_A} is distinct from {column_B}",
    "ExpectColumnValueLengthsToBeBetween": "length({column}) < {min_value}",
    "ExpectColumnValuesToBeBetween": (
        "{column} < {min_value} or {column} > {max_value}"
        " or {strict_min} and {column} = {min_value}"
    ),
    "ExpectColumnValuesToBeInSet": "{column} not in {value_set}",
    "ExpectColumnValuesToBeNull": "{column} is not null",
    "ExpectColumnValuesToMatchRegex": "not regexp_matches({column}::varchar, {regex})",
    "ExpectColumnValuesToNotBeInSet": "{column} in {value_set}",
    "ExpectColumnValuesToNotBeNull": "{column} is null",
    "ExpectCompoundColumnsToBeUnique": (
        "({column_list}) in"
        " (select ({column_list}) from checked group by {column_list} having count(*) > 1)"
    ),
}
"""Kind of an expectation -> the condition that a row breaks it; an argument that is not given is
NULL.
"""
_ONLY_PYTHON = re.compile(r"\(\?[^:]|\\\d")
"""What regular expressions of Python may have and those of DuckDB lack: look-around, and references
to groups.
"""
_ROW_CONDITIONS = ((IS_OK, "status = 'ok'"), (IS_NOT_OK, "status <> 'ok'"))


def condition_of(expectation: Expectation) -> str | None:
    """Return the condition that a row of the table `checked` breaks an expectation; None if SQL has
    none for its kind or arguments.
    """
    arguments = dict(expectation.arguments)
    row_condition = arguments.pop("row_condition", None)
    row_filter = "true"
    if row_condition is not None:
        row_filter = next((sql for rows, sql in _ROW_CONDITIONS if rows == row_condition), "")
    template = _CONDITIONS.get(expectation.kind, "")
    known_names = {name for _, name, _, _ in Formatter().parse(template) if name}
    if not template or not row_filter or not arguments.keys() <= known_names:
        return None
    if _ONLY_PYTHON.search(arguments.get("regex", "")):
        return None
    literals = defaultdict(lambda: "null")
    for name, value in arguments.items():
        literals[name] = _literal(name, value)
    return f"({template.format_map(literals)}) and {row_filter}"


def _literal(name: str, value: Any) -> str:
    """Return an argument in SQL: a name of a column, a value, or a list of either."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        literals = ", ".join(_literal(name, item) for item in value)
        return literals if name == "column_list" else f"({literals})"
    if name.startswith("column"):
        return f'"{value}"'
    if value is None:
        return "null"
    return "'{}'".format(value.replace("'", "''")) if isinstance(value, str) else str(value)


def query_of(expectations: Sequence[Expectation]) -> str | None:
    """Return the query for the number of rows of the table `checked`, and whether any may break an
    expectation; None if SQL cannot say that of all.
    """
    conditions = [condition_of(expectation) for expectation in expectations]
    breaks = [f"exists (from checked where {condition})" for condition in conditions if condition]
    if len(breaks) < len(conditions):
        return None
    return f"select count(*) as n_rows, {' or '.join(breaks)} as may_fail from checked"
