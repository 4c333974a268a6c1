"""The SQL behind figures, with what it asks for written in, so that what is shown is what ran."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sql
from warehouse.reader import quoted


@dataclass(frozen=True)
class Rows:
    """A small table that a query joins with: `from $name as alias (column, ...)`."""

    rows: tuple[tuple[Any, ...], ...]
    width: int


def filled(name: str, values: Mapping[str, Any]) -> str:
    """The text of `sql/report/<name>.sql` with each `$name` replaced by its literal.

    Raises:
        KeyError: the query asks for something that is not given.
    """
    return re.sub(r"\$([a-z_]+)", lambda found: literal(values[found[1]]), sql.read(f"report/{name}"))


def literal(value: Any) -> str:
    """A value as SQL text."""
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return str(value).lower()
        case Rows(rows=()):
            # A table without rows still has to have its columns.
            return f"(select {', '.join(['null'] * value.width)} where false)"
        case Rows():
            return "(values\n    " + ",\n    ".join(f"({_listed(row)})" for row in value.rows) + "\n)"
        case list() | tuple():
            return f"[{_listed(value)}]"
        case _:
            return quoted(value)


def _listed(values: Any) -> str:
    return ", ".join(map(literal, values))
