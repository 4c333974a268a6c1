"""What tests of judges share."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class StoredResponses(NamedTuple):
    """A warehouse with responses, and the port of their provider.

    Later providers have the same port: the address of a model is part of its identity.
    """

    warehouse: Path
    port: int


def distinct(rows: Iterable[Mapping[str, Any]], column: str) -> set[Any]:
    """The distinct values of a column."""
    return {row[column] for row in rows}
