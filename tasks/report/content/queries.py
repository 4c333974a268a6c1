"""The SQL behind figures, with what it asks for written in, so that what is shown is what ran."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import sql
from warehouse import quoted


@dataclass(frozen=True)
class Rows:
    """A small table that a query reads: `from $name as alias (column, ...)`."""

    rows: tuple[tuple[Any, ...], ...]
    width: int

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Self:
        """Some columns of records, in this order."""
        return cls(tuple(tuple(record[column] for column in columns) for record in records), len(columns))

    @property
    def literal(self) -> str:
        """The table as SQL text; without rows it still has to have its columns."""
        if not self.rows:
            return f"(select {', '.join(['null'] * self.width)} where false)"
        return "(values\n    " + ",\n    ".join(f"({_listed(row)})" for row in self.rows) + "\n)"


def filled(name: str, values: Mapping[str, Any]) -> str:
    """The text of a query below `sql/report/`, with the shared steps that it reads, and a literal for each `$name`.

    Raises:
        KeyError: the query asks for something that is not given.
    """
    query, shared = sql.read(f"report/{name}"), sql.queries("report/shared")
    text = sql.with_steps(query, {step: shared[step] for step in _steps(query)})
    return re.sub(r"\$([a-z_]+)", lambda found: literal(values[found[1]]), text)


def _steps(query: str) -> list[str]:
    """The steps of `sql/report/shared.sql` that a query reads, each after those that it reads itself."""
    shared = sql.queries("report/shared")
    found: dict[str, None] = {}
    for step in re.findall(r"\b(?:from|join) (\w+)", query):
        if step in shared:
            found |= dict.fromkeys([*_steps(shared[step]), step])
    return list(found)


def literal(value: Any) -> str:
    """A value as SQL text."""
    match value:
        case None:
            return "null"
        case bool() | int():
            return str(value).lower()
        case float():  # with an exponent: without one it would be a decimal, which charts do not take for a number
            return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"
        case Rows():
            return value.literal
        case list() | tuple():
            return f"[{_listed(value)}]"
        case _:
            return quoted(value)


def _listed(values: Any) -> str:
    return ", ".join(map(literal, values))
