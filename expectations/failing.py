"""The project's own expectations in SQL: whether any row of a table breaks one.

The condition is made from the arguments that Great Expectations gets. A row that breaks the
expectation always meets it; it may also hold for rows that Great Expectations accepts, which then
decides. Checks that only a benchmark declares may have any kind, argument and regular expression,
so they have no condition.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from expectations import CHECKS, IS_OK, Expectation

_CONDITIONS = {
    "ExpectColumnPairValuesToBeEqual": "{column_A} is distinct from {column_B}",
    "ExpectColumnValueLengthsToBeBetween": "length({column}) < {min_value}",
    "ExpectColumnValuesToBeBetween": (
        "{column} < {min_value} or {column} > {max_value}"
        " or {strict_min} and {column} = {min_value}"
    ),
    "ExpectColumnValuesToBeInSet": "{column} not in {value_set}",
    "ExpectColumnValuesToBeNull": "{column} is not null",
    "ExpectColumnValuesToMatchRegex": "not regexp_matches({column}, {regex})",
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


def condition_of(expectation: Expectation) -> str:
    """Return the condition that a row of the table `checked` breaks an expectation."""
    literals: dict[str, str] = defaultdict(lambda: "null")
    for name, value in expectation.arguments.items():
        literals[name] = _literal(name, value)
    condition = f"({_CONDITIONS[expectation.kind].format_map(literals)})"
    row_condition = expectation.arguments.get("row_condition")
    if row_condition is None:
        return condition
    operator = "=" if row_condition == IS_OK else "<>"
    return f"{condition} and status {operator} 'ok'"


def _literal(name: str, value: Any) -> str:
    """Return an argument in SQL: the name of a column, a value, or a list of either."""
    if isinstance(value, list):
        literals = ", ".join(_literal(name, item) for item in value)
        return literals if name == "column_list" else f"({literals})"
    if name.startswith("column"):
        return f'"{value}"'
    if value is None:
        return "null"
    # DuckDB gives a literal the type of the column.
    return "'{}'".format(str(value).replace("'", "''"))


def query_of(expectations: Sequence[Expectation]) -> str | None:
    """Return the query for the number of rows of the table `checked`, and whether any may break an
    expectation; None if a benchmark declares one of its own.
    """
    breaks = []
    for expectation in expectations:
        if expectation.suite == "ingest" and expectation.check not in CHECKS:
            return None
        breaks.append(f"exists (from checked where {condition_of(expectation)})")
    return f"select count(*) as n_rows, {' or '.join(breaks)} as may_fail from checked"
