"""A table that a query gave: the form in which results are printed and drawn."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """A result: its columns and its rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]
