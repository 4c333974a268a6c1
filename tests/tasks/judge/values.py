"""The values of rows."""

from collections.abc import Iterable, Mapping
from typing import Any


def distinct(rows: Iterable[Mapping[str, Any]], column: str) -> set[Any]:
    """The distinct values of a column."""
    return {row[column] for row in rows}
