"""Rows as CSV that a spreadsheet shows as they are."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.rules.text.cells import defused


def as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV, with full precision; a list is JSON, a moment is UTC in ISO 8601.

    Text that a spreadsheet would run or rewrite has an apostrophe in front (`tasks.rules.text.cells`).
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return file.getvalue()


def is_marked(value: Any) -> bool:
    """Whether a cell has an apostrophe in front in the CSV."""
    return isinstance(value, str) and defused(value) != value


def _plain(value: Any) -> Any:
    match value:
        case str():
            return defused(value)
        case list():
            return json.dumps(value, ensure_ascii=False)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case _:
            return value
