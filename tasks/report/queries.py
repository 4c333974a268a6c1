"""The SQL behind figures, with what it asks for written in, so that what is shown is what ran."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sql
from warehouse.parts.engine import quoted


@dataclass(frozen=True)
class Rows:
    """A small table that a query joins with: `from $name as alias (column, ...)`."""

    rows: tuple[tuple[Any, ...], ...]
    width: int

    @property
    def literal(self) -> str:
        """The table as SQL text; without rows it still has to have its columns."""
        if not self.rows:
            return f"(select {', '.join(['null'] * self.width)} where false)"
        return "(values\n    " + ",\n    ".join(f"({_listed(row)})" for row in self.rows) + "\n)"


@dataclass(frozen=True)
class Subquery:
    """A query in a query: `from $name as alias`, or what stands behind `in`."""

    text: str

    @property
    def literal(self) -> str:
        """The query in parentheses, further in than what stands around it."""
        return "(\n    " + self.text.rstrip().replace("\n", "\n    ") + "\n)"


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
        case Rows() | Subquery():
            return value.literal
        case list() | tuple():
            return f"[{_listed(value)}]"
        case _:
            return quoted(value)


def _listed(values: Any) -> str:
    return ", ".join(map(literal, values))
